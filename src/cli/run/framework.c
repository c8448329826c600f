#include "framework.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli.h"
#include "config.h"
#include "program_file.h"
#include "put.h"
#include "text.h"

#define MOST_VARIABLES 4

/* A row for each word of run.framework (options.def) but none. */
struct framework {
	const char *word; /* of run.framework */
	const char *name; /* for people */
	const char *value;
	const char *set[MOST_VARIABLES];  /* these get the value, if none is set, even to nothing */
	const char *kept[MOST_VARIABLES]; /* nor one of these, which the framework reads, too */
	const char *not_on_amd;           /* the reason; NULL: it works there */
};

/*
 * PyTorch (c10/core/AllocatorConfig.cpp, c10/cuda/CUDACachingAllocator.cpp) reads
 * PYTORCH_CUDA_ALLOC_CONF since 2.0, and later PYTORCH_ALLOC_CONF, too. Some versions, such as 2.9,
 * warn of the former unless the latter is set, but choose the allocator by the former. With both,
 * no version warns. An empty variable counts as set: PyTorch then reads no other one.
 */
static const struct framework frameworks[] = {
    {"pytorch",
     "PyTorch",
     "backend:cudaMallocAsync",
     {"PYTORCH_ALLOC_CONF", "PYTORCH_CUDA_ALLOC_CONF"},
     {"PYTORCH_HIP_ALLOC_CONF"},
     /* They take ROCm's version for CUDA's: "Cannot use cudaMallocAsyncAllocator with cuda < 11.4" */
     "several builds for AMD cards end at their start with backend:cudaMallocAsync"},
};

static const struct framework *find_framework(const char *word)
{
	for (size_t i = 0; i < sizeof(frameworks) / sizeof(frameworks[0]); i++) {
		if (!strcmp(frameworks[i].word, word))
			return &frameworks[i];
	}
	return NULL;
}

bool cli_framework_finds_amd(const char *root)
{
	char amd[PATH_MAX], nvidia[PATH_MAX];

	snprintf(amd, sizeof(amd), "%s" PROGRAM_NODE_AMD, root);
	snprintf(nvidia, sizeof(nvidia), "%s" PROGRAM_NODE_NVIDIA, root);
	return !access(amd, F_OK) && access(nvidia, F_OK);
}

/* Adds those that are set, as NAME=VALUE. Returns how many have the value that we would set. */
static unsigned add_set(struct spill_text *text, const char *const names[MOST_VARIABLES], const char *wanted)
{
	unsigned same = 0;

	for (unsigned i = 0; i < MOST_VARIABLES && names[i]; i++) {
		const char *value = getenv(names[i]);

		if (value)
			spill_text_format(text, "%s%s=%s", text->length ? ", " : "", names[i], value);
		same += value && !strcmp(value, wanted);
	}
	return same;
}

static int set_variables(const struct framework *framework)
{
	char names[256];
	struct spill_text text = spill_text_begin(names, sizeof(names));

	for (unsigned i = 0; i < MOST_VARIABLES && framework->set[i]; i++) {
		if (setenv(framework->set[i], framework->value, 1)) {
			perror("spill run");
			return CLI_FINDINGS;
		}
		spill_text_format(&text, "%s%s", i ? " and " : "", framework->set[i]);
	}
	cli_fprintf(stderr, "spill run: %s are set to %s\n", names, framework->value);
	return CLI_FINE;
}

/* Sets all or nothing: a value of ours would win over one of the user's, or cause a warning. */
static int set_if_free(const struct framework *framework)
{
	char there[1024];
	struct spill_text text = spill_text_begin(there, sizeof(there));
	unsigned same = add_set(&text, framework->set, framework->value), count = 0;

	while (count < MOST_VARIABLES && framework->set[count])
		count++;
	if (same == count)
		return CLI_FINE; /* by a `spill run` before this one */
	add_set(&text, framework->kept, framework->value);
	if (!text.length)
		return set_variables(framework);
	cli_fprintf(stderr, "spill run: nothing is set for %s, which keeps %s\n", framework->name, there);
	return CLI_FINE;
}

/* The policy that the library will have in the program. */
static const struct spill_policy *load_policy(char *const *program)
{
	static struct spill_config config; /* too large for the stack */
	char name[256];

	program_name(program, name, sizeof(name));
	spill_config_load(&config, name);
	return &config.policy;
}

/* NULL: the variables may be set. */
static const char *find_obstacle(const struct framework *framework, const struct spill_policy *policy)
{
	if (policy->mode == SPILL_MODE_OFF)
		return "spill.mode is off";
	if (policy->mode == SPILL_MODE_OBSERVE)
		return "spill.mode is observe";
	return cli_framework_finds_amd("") ? framework->not_on_amd : NULL;
}

int cli_framework_set(char *const *program, const char *asked)
{
	const struct spill_policy *policy = load_policy(program);
	const struct framework *framework;
	const char *obstacle;
	struct spill_error error;
	char word[64];

	spill_option_format(policy, (unsigned)spill_option_find("run", "framework", &error), word,
	                    sizeof(word));
	framework = find_framework(asked ? asked : word);
	if (!framework || spill_config_disabled())
		return CLI_FINE;
	obstacle = find_obstacle(framework, policy);
	if (!obstacle)
		return set_if_free(framework);
	cli_fprintf(stderr, "spill run: nothing is set for %s: %s\n", framework->name, obstacle);
	return CLI_FINE;
}
