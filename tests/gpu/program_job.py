"""Usual PyTorch programs, as their libraries have them, with random weights: inference of language models, training, fine-tuning.

usage: program_job.py NAME STEPS      NAME: see PROGRAMS

Each needs 7 to 11 GiB. Standard output is the tokens or losses, a step a line, digit for digit: they must not depend on where
memory is. Standard error: as of train_job.py.
"""
import itertools
import sys
import time

from job_times import tell_step, tell_times, wait_for_turn
from torch_model import deterministic, functional, model, peak_mib, torch, wait

WORDS, LENGTH = 32000, 512


def llama(layers):
    """0.33 GiB a layer, and 0.5 GiB of words."""
    from transformers import LlamaConfig, LlamaForCausalLM  # pylint: disable=import-outside-toplevel
    wait_for_turn()
    torch.set_default_dtype(torch.bfloat16)
    with torch.device("cuda"):
        return LlamaForCausalLM(LlamaConfig(vocab_size=WORDS, hidden_size=4096, intermediate_size=11008, num_hidden_layers=layers,
                                            num_attention_heads=32, num_key_value_heads=8, max_position_embeddings=8192))


def greedy(net, come, count, cache=None, keeps=True):
    """`count` tokens of each row, and the cache."""
    made = []
    with torch.inference_mode():
        for _ in range(count):
            answer = net(input_ids=come, past_key_values=cache, use_cache=keeps, logits_to_keep=1)
            come, cache = answer.logits[:, -1].argmax(1, keepdim=True), answer.past_key_values
            made.append(come)
    return torch.cat(made, 1), cache


def generate(net, batch, length, count, steps=sys.maxsize):
    """A step: `count` tokens. The cache goes on growing for so many steps, then there is a new prompt."""
    tokens, cache, done = None, None, 0

    def step():
        nonlocal tokens, cache, done
        if done % steps == 0:
            tokens, cache = torch.randint(WORDS, (batch, length), device="cuda"), None
        done += 1
        made, cache = greedy(net, tokens, count, cache)
        tokens = made[:, -1:]
        return made
    return step


def prompt(layers, batch, length, count=0):
    """A step: reads a prompt, then generates. Nothing is kept for the next step."""
    net = llama(layers).eval()
    tokens = torch.randint(WORDS, (batch, length), device="cuda")
    return lambda: greedy(net, tokens, count + 1, keeps=count > 0)[0]


def turns(layers, batch, length, steps):
    """Two models in one process. A step reads a prompt. Each model has so many steps, then it is the other's turn."""
    nets = [llama(layers).eval() for _ in range(2)]
    tokens = torch.randint(WORDS, (batch, length), device="cuda")
    turn = itertools.cycle(net for net in nets for _ in range(steps))
    return lambda: greedy(next(turn), tokens, 1, keeps=False)[0]


def mixture(layers):
    """A mixture of 16 experts a layer, of which a token reads two."""
    from transformers import MixtralConfig, MixtralForCausalLM  # pylint: disable=import-outside-toplevel
    wait_for_turn()
    torch.set_default_dtype(torch.bfloat16)
    with torch.device("cuda"):
        return MixtralForCausalLM(MixtralConfig(vocab_size=WORDS, hidden_size=2048, intermediate_size=5632, num_hidden_layers=layers,
                                                num_attention_heads=16, num_key_value_heads=4, num_local_experts=16))


def training(net, optimizer, loss_of, autocast=True):
    def step():
        optimizer.zero_grad(set_to_none=True)
        with torch.autocast("cuda", dtype=torch.bfloat16, enabled=autocast):
            loss = loss_of(net)
        loss.backward()
        optimizer.step()
        return loss.detach()
    return step


def next_word(net, tokens):
    return functional.cross_entropy(net(tokens[:, :-1]).float().flatten(0, 1), tokens[:, 1:].flatten())


def transformer(layers, make_optimizer, batch=8):
    wait_for_turn()
    net = model(layers=layers, width=2048, heads=16, words=4096)
    tokens = torch.randint(4096, (batch, LENGTH + 1), device="cuda")
    return training(net, make_optimizer(net.parameters()), lambda net: next_word(net, tokens), autocast=False)


def encoder(batch):
    from transformers import BertConfig, BertForMaskedLM  # pylint: disable=import-outside-toplevel
    wait_for_turn()
    with torch.device("cuda"):
        net = BertForMaskedLM(BertConfig(vocab_size=WORDS, hidden_size=1024, num_hidden_layers=24, num_attention_heads=16,
                                         intermediate_size=4096))
    tokens = torch.randint(WORDS, (batch, LENGTH), device="cuda")
    return training(net, torch.optim.AdamW(net.parameters(), lr=1e-4), lambda net: net(input_ids=tokens, labels=tokens).loss)


def pictures(net, batch, make_optimizer, layout=torch.contiguous_format):
    net = net.to(memory_format=layout)
    come = torch.randn(batch, 3, 224, 224, device="cuda").to(memory_format=layout)
    labels = torch.randint(1000, (batch,), device="cuda")
    return training(net, make_optimizer(net.parameters()), lambda net: functional.cross_entropy(net(come).float(), labels))


def vision(batch):
    import timm  # pylint: disable=import-outside-toplevel
    wait_for_turn()
    with torch.device("cuda"):
        net = timm.create_model("vit_large_patch16_224", pretrained=False)
    return pictures(net, batch, adamw)


def convolutions(batch):
    import torchvision  # pylint: disable=import-outside-toplevel
    wait_for_turn()
    torch.backends.cudnn.deterministic, torch.backends.cudnn.benchmark = True, False
    with torch.device("cuda"):
        net = torchvision.models.convnext_large(weights=None)
    return pictures(net, batch, momentum, torch.channels_last)


def lora(layers, batch):
    from peft import LoraConfig, get_peft_model  # pylint: disable=import-outside-toplevel
    net = get_peft_model(llama(layers), LoraConfig(r=16, lora_alpha=32, target_modules=["q_proj", "v_proj"], lora_dropout=0.0))
    tokens = torch.randint(WORDS, (batch, LENGTH), device="cuda")
    trained = [parameter for parameter in net.parameters() if parameter.requires_grad]
    return training(net, torch.optim.AdamW(trained, lr=1e-4), lambda net: net(input_ids=tokens, labels=tokens).loss, autocast=False)


def sgd(parameters):
    return torch.optim.SGD(parameters, lr=0.01)


def momentum(parameters):
    return torch.optim.SGD(parameters, lr=0.01, momentum=0.9)


def adamw(parameters):
    return torch.optim.AdamW(parameters, lr=1e-4)


PROGRAMS = {
    "decode-1": lambda: generate(llama(24).eval(), 1, 128, 4),
    "decode-32": lambda: generate(llama(18).eval(), 32, 512, 4),
    "prompt": lambda: prompt(24, 1, 4096),
    "chat": lambda: prompt(24, 1, 512, 8),
    "sgd": lambda: transformer(24, sgd),
    "momentum": lambda: transformer(19, momentum),
    "adamw": lambda: transformer(15, adamw),
    "encoder": lambda: encoder(4),
    "vision": lambda: vision(24),
    "convolutions": lambda: convolutions(24),
    "lora": lambda: lora(16, 1),
    "turns": lambda: turns(12, 2, 512, 40),
    "experts": lambda: generate(mixture(8).eval(), 1, 128, 4, 60),
}


def text(answer):
    """Of a loss all digits; of tokens all of the first rows, and their sum."""
    if answer.is_floating_point():
        if not torch.isfinite(answer):
            sys.exit(f"program_job.py: a loss of {answer.item()} compares with nothing")
        return f"{answer.item():.9g}"
    return f"{answer[:2].flatten().tolist()} {answer.sum().item()}"


def main():
    name, steps = sys.argv[1], int(sys.argv[2])
    if name not in PROGRAMS:
        sys.exit(__doc__)
    deterministic()
    step, times = PROGRAMS[name](), []
    for number in range(steps):
        start = time.monotonic()
        answer = step()
        wait()
        times.append((time.monotonic() - start) * 1e3)
        print(text(answer), flush=True)
        tell_step(number, times[-1])
    tell_times(times[1:] or times, peak_mib())


main()
