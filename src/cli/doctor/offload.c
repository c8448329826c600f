/* spill doctor -- CMD with a model for llama.cpp: would its own CPU offload be faster? */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "doctor.h"
#include "gguf.h"
#include "put.h"

/* Of older llama.cpp; newer ones take what the model was trained for, and shorten it to fit. */
#define DEFAULT_CONTEXT 4096
#define MOST_CONTEXT (1u << 30)

static bool is_model(const char *word)
{
	size_t length = strlen(word);
	return length > 5 && !strcmp(word + length - 5, ".gguf");
}

/* The word behind an option, or NULL. */
static const char *option_value(char *const *words, const char *letter, const char *name)
{
	for (; words[0] && words[1]; words++) {
		if (!strcmp(words[0], letter) || !strcmp(words[0], name))
			return words[1];
	}
	return NULL;
}

/* The model that -m names; NULL: none. */
static const char *find_named_model(char *const *words)
{
	const char *named = option_value(words, "-m", "--model");
	return named && is_model(named) ? named : NULL;
}

/* The model in the program's arguments: -m FILE, or an operand. Drafts and projectors have options. */
static const char *find_model(char *const *words)
{
	const char *named = find_named_model(words);
	if (named)
		return named;
	for (; words[0] && words[1]; words++) {
		if (words[0][0] != '-' && is_model(words[1]))
			return words[1];
	}
	return NULL;
}

static uint64_t find_context(char *const *words)
{
	const char *text = option_value(words, "-c", "--ctx-size");
	unsigned long value = text ? strtoul(text, NULL, 10) : 0;
	return value && value <= MOST_CONTEXT ? value : DEFAULT_CONTEXT;
}

/* An operand may be a file that the program is to write. */
void doctor_look_at_model_file(const struct doctor_patient *patient)
{
	const char *path = patient->words && patient->words[0] ? find_named_model(patient->words) : NULL;
	char part[PATH_MAX];
	const char *problem = path ? gguf_unreadable(path, part) : NULL;
	if (problem)
		doctor_find(DOCTOR_model_missing, "the model %s cannot be read: %s", part, problem);
}

void doctor_look_at_model(const struct doctor_patient *patient, const struct doctor_devices *devices)
{
	const char *path = patient->words && patient->words[0] ? find_model(patient->words) : NULL;
	struct gguf_model file;
	struct decode_offload result;
	if (!path)
		return;
	char part[PATH_MAX];
	if (path == find_named_model(patient->words) && gguf_unreadable(path, part))
		return; /* there is a warning already */
	const char *problem = gguf_read(path, &file);
	if (problem) {
		doctor_find(DOCTOR_model_closed, "%s: %s", path, problem);
		return;
	}
	uint64_t context = find_context(patient->words);
	const struct decode_model model = {.layers = (unsigned)file.layers,
	                                   .layer_bytes = file.layer_bytes + file.cache_bytes * context,
	                                   .output_bytes = file.output_bytes + file.other_bytes};
	bool overflows =
	    decode_offload(&model, devices->free, devices->copy_rate, devices->memory_rate, &result);
	doctor_find(overflows ? DOCTOR_model_overflows : DOCTOR_model_fits,
	            "%s: %u layers; with a cache of %llu tokens it needs %s, and %s of %u device%s is free",
	            path, model.layers, (unsigned long long)context, spill_size(result.needs).text,
	            spill_size(devices->free).text, devices->count, devices->count == 1 ? "" : "s");
	if (overflows && result.offload_is_faster && !file.has_experts)
		doctor_find(DOCTOR_offload_layers,
		            "llama.cpp's own -ngl %u would probably be faster%s: the CPU adds about %.0f ms "
		            "to a token, and the link %.0f ms",
		            result.layers, devices->simulated ? " (simulated)" : "", result.offload_ms,
		            result.link_ms);
}
