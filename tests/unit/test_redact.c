/* Secrets in a program's arguments are hidden, and all other arguments are shown. */
#include "unit.h"

#include <string.h>

#include "start_line.h"

/* One argument, and as much of it as may be seen. */
struct argument {
	const char *text, *shown;
};

#define WHOLE(text) \
	{ \
		text, text \
	}

static void check(const struct argument *arguments, size_t count)
{
	struct spill_redact state = {0};

	for (size_t i = 0; i < count; i++) {
		size_t length = spill_redact_shown(&state, arguments[i].text);

		if (length != strlen(arguments[i].shown) ||
		    strncmp(arguments[i].text, arguments[i].shown, length) != 0)
			fail_msg("'%s' is shown up to %zu, not as '%s'", arguments[i].text, length,
			         arguments[i].shown);
	}
}

#define CHECK(...) \
	do { \
		static const struct argument arguments[] = {__VA_ARGS__}; \
		check(arguments, sizeof(arguments) / sizeof(arguments[0])); \
	} while (0)

TEST(names_of_secrets)
{
	static const char *const names[] = {
	    "--api-key",       "--apikey",
	    "--apiKey",        "-api_key",
	    "--model.api_key", "--hf-token",
	    "--token",         "--auth",
	    "--authToken",     "--Authorization",
	    "--password",      "--db-password-file",
	    "--passwd",        "--passphrase",
	    "--client-secret", "--secretname",
	    "--credentials",   "--ssh-keys",
	    "--access-tokens", "--pwd",
	    "--pass",          "-hft",
	    "--API-KEY",       "--openai.key",
	    "--userPass",      "--sasl.PASSWORD",
	    "--db-pass",       "--key2",
	    "--oauth",         "--proxy-auth",
	    "--key-file",      "--clientsecretvalue",
	    "--x-signature",   "--cookie",
	    "--sig",           "--jwt",
	};

	(void)state;
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		struct spill_redact redact = {0};
		char joined[64];

		/* --NAME VALUE…: the name is seen, no value is, and the next option is. */
		assert_int_equal(spill_redact_shown(&redact, names[i]), strlen(names[i]));
		if (spill_redact_shown(&redact, "-hunter2") != 0 ||
		    spill_redact_shown(&redact, "hunter3") != 0)
			fail_msg("%s -hunter2 hunter3 is shown", names[i]);
		assert_int_equal(spill_redact_shown(&redact, "-m"), strlen("-m"));
		assert_int_equal(spill_redact_shown(&redact, "model.gguf"), strlen("model.gguf"));
		/* --NAME=VALUE, and --NAME:VALUE. */
		for (const char *sign = "=:"; *sign; sign++) {
			strcpy(joined, names[i]);
			joined[strlen(names[i])] = *sign;
			strcpy(joined + strlen(names[i]) + 1, "hunter2");
			if (spill_redact_shown(&redact, joined) > strlen(names[i]) + 1)
				fail_msg("%s is shown", joined);
		}
		assert_int_equal(spill_redact_shown(&redact, "model.gguf"), strlen("model.gguf"));
	}
}

TEST(names_of_nothing)
{
	static const char *const names[] = {
	    "--tokenizer", "--keyboard",

	    "-k",          "--author",   "--keep",

	    "--compass",   "-p",         "--bypass-x",

	    "--passes",    "model.gguf", "-m",         "", "-", "--", "=", "--tokenize=yes",

	    "--sigma",     "--design",   "secret",
	};

	(void)state;
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		struct spill_redact redact = {0};

		if (spill_redact_shown(&redact, names[i]) != strlen(names[i]))
			fail_msg("%s is not shown", names[i]);
		if (spill_redact_shown(&redact, "value") != strlen("value"))
			fail_msg("what follows %s is not shown", names[i]);
	}
}

/* Without dashes it is an assignment, and the next argument is another one. */
TEST(assignments)
{
	CHECK({"API_KEY=hunter2", "API_KEY="}, WHOLE("hunter"), {"OPENAI_API_KEY=x=y", "OPENAI_API_KEY="},
	      WHOLE("token"), WHOLE("value"), WHOLE("HOME=/root"), {"db.password=p", "db.password="});
}

/* Within an argument: a list, a URL's query, a shell's command. What is behind the first is not shown either. */
TEST(assignments_within)
{
	CHECK({"--url=https://host/v1?a=b&api_key=hunter2&c=d", "--url=https://host/v1?a=b&api_key="},
	      {"HOME=/root HF_TOKEN=hunter2 python3 train.py", "HOME=/root HF_TOKEN="},
	      {"export X; AWS_SECRET_ACCESS_KEY=x", "export X; AWS_SECRET_ACCESS_KEY="},
	      {"max_tokens=128,token=x", "max_tokens=128,token="}, WHOLE("model=x,max_tokens=128,n=1"),
	      WHOLE("the key = value"), WHOLE("keys?x=token"), WHOLE("a:key:b"));
}

/* A command in one argument, and JSON: an option's next word, a header, a member. */
TEST(values_of_other_forms)
{
	CHECK({"vllm serve m --api-key hunter2", "vllm serve m --api-key "},
	      {"--hf-token hunter2", "--hf-token "}, {"a -hft\thunter2", "a -hft\t"},
	      {"curl -H 'X-Api-Key: hunter2' x", "curl -H 'X-Api-Key:"},
	      {"{\"n\": 1, \"api_key\": \"hunter2\"}", "{\"n\": 1, \"api_key\":"},
	      {"--config={'password' : 'hunter2'}", "--config={'password' :"},
	      {"{\\\"token\\\":\\\"hunter2\\\"}", "{\\\"token\\\":"}, {"'HF_TOKEN'=hunter2", "'HF_TOKEN'="},
	      WHOLE("{\"max_tokens\": 128, \"n\": 1}"), WHOLE("run --max-tokens 128 --n 1"),
	      WHOLE("{\"pad_token_id\": 0, \"rope\": 2}"), {"{\"token_id\": \"x\"}", "{\"token_id\":"},
	      {"run --max-tokens 128 --token x", "run --max-tokens 128 --token "}, WHOLE("a key to it"),
	      WHOLE("a-key to it"), WHOLE("\"key\" of it"), WHOLE("a --token"), WHOLE("std::key::b"),
	      {"{\"key\" = 1}", "{\"key\" ="}, WHOLE("--use-auth"));
}

/* A count of tokens is a number, a token is not. */
TEST(counts)
{
	CHECK(WHOLE("--max-tokens"), WHOLE("128"), WHOLE("--max-tokens=128"), WHOLE("--tokens"),
	      {"12345678901234", ""}, WHOLE("--tokens"), {"abc", ""}, {"--tokens=abc", "--tokens="},
	      {"--max-tokens=1x", "--max-tokens="}, WHOLE("--token"), {"128", ""}, WHOLE("--pad_token_id"),
	      WHOLE("0"), WHOLE("--eos-token-id=128009"), WHOLE("--token-id"), {"abc", ""});
}

TEST(urls_and_headers)
{
	CHECK({"http://me:hunter2@host/", ""}, {"--url=https://token@host", ""}, {"socks5://u:p@h:1?x", ""},
	      WHOLE("http://host/a@b"), WHOLE("http://host?mail=a@b"), WHOLE("me@host"),
	      WHOLE("http://host/#a@b"), {"Authorization: Basic x", ""}, {"X: bearer abc", ""}, WHOLE("-H"),
	      {"X-Api-Key: hunter2", "X-Api-Key:"}, {"http://a,http://me:hunter2@b", ""},
	      WHOLE("http://a,http://b"), {"authorization:abc", ""});
}

/* A hidden word is still read as an option: --use-auth --password x. */
TEST(one_behind_another)
{
	CHECK(WHOLE("--use-auth"), {"--password", ""}, {"hunter2", ""}, {"hunter3", ""}, WHOLE("-x"),
	      WHOLE("next"));
}

/* Wherever it stands: the prefix of a service, and 16 characters of which one is a capital or a digit. */
TEST(tokens_of_services)
{
	CHECK({"hf_abcdefghijklmnoP", ""}, WHOLE("hf_abcdefghijklmnop"), WHOLE("hf_abcdefghijklmN"),
	      {"a hf_abcdefghijklmno1 b", "a "}, {"https://h/hf_abcdefghijklmno1", "https://h/"},
	      WHOLE("xhf_abcdefghijklmno1"), {"x=sk-proj-abcdefghijk1", "x="},
	      {"x:AKIAIOSFODNN7EXAMPLE", "x:"}, {"eyJhbGciOiJIUzI1NiJ9.e30.x", ""},
	      WHOLE("sk-learn-from-examples"), WHOLE("ghp_short1"), {"hf_abcdefghijklmnoP api_key=x", ""},
	      {"api_key=hf_abcdefghijklmnoP", "api_key="});
}
