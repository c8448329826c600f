/*
 * Finding the policy: environment, files, their trust, and what holds after a problem. Each test runs in a
 * folder of its own, which stands for the file system: HOME, XDG_CONFIG_HOME, and (see meson.build) etc.conf
 * for /etc/spill/spill.conf.
 */
#include <fcntl.h>
#define SETUP set_up
#define TEARDOWN tear_down
#include "unit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "config.h"
#include "decide.h"
#include "fake_libc.h"
#include "ini_file.h"
#include "rule.h"

#define GIB ((uint64_t)1 << 30)

static struct spill_config config;
static char folder[64];
static unsigned long secure;

static bool is_secure(long arguments[6], long *result)
{
	*result = (long)secure;
	return arguments[0] == AT_SECURE;
}

static int set_up(void **state)
{
	clearenv();
	umask(022);
	secure = 0;
	fake_libc[FAKE_getauxval].hook = is_secure;
	strcpy(folder, "/tmp/spill-test-config-XXXXXX");
	return !mkdtemp(folder) || chdir(folder) || mkdir("xdg", 0755) || mkdir("xdg/spill", 0755) ||
	       setenv("XDG_CONFIG_HOME", "", 1) || setenv("HOME", "/nonexistent", 1);
}

static int tear_down(void **state)
{
	char command[128];

	snprintf(command, sizeof(command), "/bin/rm -rf %s", folder);
	return chdir("/") || system(command);
}

static void use_xdg(void)
{
	char path[128];

	snprintf(path, sizeof(path), "%s/xdg", folder);
	setenv("XDG_CONFIG_HOME", path, 1);
}

static void write_file(const char *path, const char *text)
{
	FILE *file = fopen(path, "w");

	assert_non_null(file);
	fputs(text, file);
	assert_int_equal(fclose(file), 0);
}

static void load(void)
{
	memset(&config, 0xee, sizeof(config));
	spill_config_load(&config, "prog");
}

/* The source of an option as the log shows it, "" if it is not listed. */
static const char *source(const char *name)
{
	for (unsigned i = 0; i < config.option_count; i++) {
		if (!strcmp(config.options[i].name, name))
			return config.options[i].source;
	}
	return "";
}

static const char *value(const char *name)
{
	for (unsigned i = 0; i < config.option_count; i++) {
		if (!strcmp(config.options[i].name, name))
			return config.options[i].value;
	}
	return "";
}

/* After a problem: the defaults, observed. */
static void assert_problem(const char *part)
{
	if (!strstr(config.problem, part))
		fail_msg("'%s' is not in '%s'", part, config.problem);
	assert_null(strchr(config.problem, '\n'));
	assert_int_equal(config.policy.mode, SPILL_MODE_OBSERVE);
	assert_int_equal(config.policy.device_limit.value, SPILL_UNLIMITED);
	assert_string_equal(value("spill.mode"), "observe");
	assert_string_equal(source("spill.mode"), "problem");
	assert_string_equal(source("device.limit"), "default");
}

static void assert_fine(void)
{
	assert_string_equal(config.problem, "");
	assert_string_equal(config.warning, "");
}

/* One file or profile, whatever else there is: the environment, and the user's files. */
TEST(one_source_alone)
{
	use_xdg();
	setenv("SPILL_DEVICE_LIMIT", "1GiB", 1);
	write_file("xdg/spill/spill.conf", "[host]\nlimit = 1GiB\n");
	write_file("one.conf", "[device]\nreserve = 1MiB\n[app prog]\ndevice.reserve = 2MiB\n"
	                       "[rule a]\nprogram = other\nplace = host\n[rule b]\nplace = split\n");
	spill_config_load_only(&config, "prog", NULL, "one.conf", NULL);
	assert_fine();
	assert_string_equal(source("device.limit"), "default");
	assert_string_equal(source("host.limit"), "default");
	assert_string_equal(value("device.reserve"), "2MiB");
	assert_int_equal(config.rules.count, 1);
	assert_ptr_equal(config.policy.rules, &config.rules);
	spill_config_load_only(&config, "prog", NULL, NULL, "moe-experts");
	assert_fine();
	assert_string_equal(source("device.limit"), "default");
	assert_true(config.rules.count > 0);
	write_file("with.conf", "[spill]\nprofile = moe-experts\n[device]\nreserve = 1MiB\n");
	spill_config_load_only(&config, "prog", NULL, "with.conf", NULL);
	assert_fine();
	assert_string_equal(value("device.reserve"), "1MiB");
	assert_true(config.rules.count > 0);
	spill_config_load_only(&config, "prog", NULL, NULL, "moe-expert");
	assert_problem("moe-experts");
	spill_config_load_only(&config, "prog", NULL, "none.conf", NULL);
	assert_problem("none.conf: no such file");
	write_file("bad.conf", "[host]\nlimits = 1GiB\n");
	spill_config_load_only(&config, "prog", NULL, "bad.conf", NULL);
	assert_problem("bad.conf:2:1: ");
}

TEST(nothing)
{
	load();
	assert_fine();
	assert_int_equal(config.policy.mode, SPILL_MODE_SPILL);
	assert_string_equal(source("spill.mode"), "default");
	assert_string_equal(value("host.limit"), "50%");
	assert_string_equal(value("log.path"), "${XDG_STATE_HOME:-~/.local/state}/spill/%e-%p.jsonl");
	assert_int_equal(config.option_count, SPILL_OPTIONS);
	assert_int_equal(config.file_count, 3); /* of the user, twice, and etc.conf */
}

/* Each option that can be set, and each device's: none is dropped. */
TEST(all_devices)
{
	char name[64];

	for (unsigned slot = SPILL_OPTIONS; slot < SPILL_OPTION_SLOTS; slot++) {
		spill_option_variable(slot, name, sizeof(name));
		setenv(name, "1GiB", 1);
	}
	load();
	assert_fine();
	assert_int_equal(config.option_count, SPILL_OPTION_SLOTS);
	for (unsigned slot = SPILL_OPTIONS; slot < SPILL_OPTION_SLOTS; slot++) {
		spill_option_name(slot, name, sizeof(name));
		assert_string_equal(value(name), "1GiB");
		assert_string_equal(source(name), "environment");
	}
}

/* For one program: before the plain sections of the file, behind what comes before the file. */
TEST(app)
{
	use_xdg();
	write_file("named.conf", "[app pr?g]\ndevice.limit = 2GiB\nlog.level = off\n"
	                         "[app other]\ndevice.limit = 9GiB\nhost.ahead = 9GiB\n"
	                         "[device]\nlimit = 1GiB\nreserve = 1MiB\n"
	                         "[app *]\ndevice.limit = 7GiB\ndevice.reserve = 2MiB\n"
	                         "[app prog]\ndevice.reserve = 8MiB\nhost.limit = 3GiB\n"
	                         "[device 1]\nreserve = 5MiB\n[movable]\nmin = 4MiB\n");
	write_file("xdg/spill/spill.conf", "[host]\nreserve = 4GiB\n"
	                                   "[app prog]\ndevice.limit = 6GiB\nhost.limit = 6GiB\n"
	                                   "movable.wait = 1s\nmovable.min = 8MiB\n");
	setenv("SPILL_POLICY", "named.conf", 1);
	setenv("SPILL_LOG_LEVEL", "spills", 1);
	load();
	assert_fine();
	assert_int_equal(config.policy.device_limit.value, 2 * GIB);
	assert_string_equal(source("device.limit"), "named.conf:2 [app pr?g]");
	assert_int_equal(config.policy.device_reserve.value, 2u << 20);
	assert_string_equal(source("device.reserve"), "named.conf:12 [app *]");
	assert_int_equal(spill_policy_device_reserve(&config.policy, 0), 2u << 20);
	assert_int_equal(spill_policy_device_reserve(&config.policy, 1), 5u << 20);
	assert_string_equal(source("device 1.reserve"), "named.conf:17");
	assert_int_equal(config.policy.host_limit.value, 3 * GIB);
	assert_string_equal(source("host.ahead"), "default");
	assert_int_equal(config.policy.log_level, SPILL_LOG_SPILLS);
	assert_string_equal(source("log.level"), "environment");
	assert_int_equal(config.policy.movable_min.value, 4u << 20);
	assert_int_equal(config.policy.movable_wait_us, 1000000);
	assert_non_null(strstr(source("movable.wait"), "/xdg/spill/spill.conf:6 [app prog]"));
	assert_int_equal(config.policy.host_reserve.value, 4 * GIB);
}

/* A mistake in a section for another program is one in the file. */
TEST(app_of_another)
{
	write_file("etc.conf", "[app other]\ndevice.limti = 1GiB\n");
	load();
	assert_problem(
	    "etc.conf:2:1: unknown key 'device.limti' in [app NAME]; the nearest is 'device.limit'");
	write_file("etc.conf", "[app prog]\nspill.mode = off\n");
	load();
	assert_fine();
	assert_int_equal(config.policy.mode, SPILL_MODE_OFF);
	secure = 1;
	load();
	assert_int_equal(config.policy.mode, SPILL_MODE_OFF);
}

/* Names of the rules that hold, in effective order, with a blank behind each. */
static const char *rule_names(void)
{
	static char names[SPILL_RULES * (SPILL_RULE_NAME + 1)];

	names[0] = '\0';
	for (unsigned i = 0; i < config.rules.count; i++)
		strcat(strcat(names, config.rules.rule[i].name), " ");
	return names;
}

/* Of the files in their order, without those of other programs, and of a name the first. */
TEST(rules)
{
	use_xdg();
	write_file("named.conf", "[rule b]\nplace = managed\nsize = 1MiB..\n"
	                         "[rule other]\nprogram = other\nplace = refuse\n"
	                         "[rule a]\nprogram = pr*\napi = cuMem*\nover = host\n");
	write_file("xdg/spill/prog.conf", "[rule c]\ngrowth = yes\nplace = split\n[rule b]\nplace = host\n");
	write_file("etc.conf", "[rule other]\ncap = 1GiB\n[rule a]\ncap = 1GiB\n");
	setenv("SPILL_POLICY", "named.conf", 1);
	load();
	assert_fine();
	assert_string_equal(rule_names(), "b a c other ");
	assert_int_equal(config.other_rules, 1);
	assert_ptr_equal(config.policy.rules, &config.rules);
	assert_int_equal(config.rules.by_site, 2);
	assert_int_equal(config.rules.by_growth, 4);
	assert_int_equal(config.rules.rule[0].place, SPILL_RULE_MANAGED);
	assert_int_equal(config.rules.rule[0].least, 1 << 20);
	assert_string_equal(value("rule b"), "size = 1MiB..; place = managed");
	assert_string_equal(source("rule b"), "named.conf:1");
	assert_string_equal(source("rule a"), "named.conf:7");
	assert_non_null(strstr(source("rule c"), "/xdg/spill/prog.conf:1"));
	assert_string_equal(source("rule other"), "etc.conf:1");
	assert_string_equal(config.options[config.option_count - 4].name, "rule b");
	assert_string_equal(config.options[config.option_count - 1].name, "rule other");
	assert_non_null(
	    strstr(config.hidden,
	           "/xdg/spill/prog.conf:4: the rule is hidden by the rule of the same name, named.conf:1\n"
	           "etc.conf:3: the rule is hidden by the rule of the same name, named.conf:7"));
	/* A rule is a file's, also in a privileged program. */
	secure = 1;
	load();
	assert_string_equal(rule_names(), "other a ");
	assert_string_equal(config.hidden, "etc.conf:3: " SPILL_RULE_NEVER "etc.conf:1");
	/* The other's program is this one, too. */
	secure = 0;
	write_file("named.conf", "[rule a]\nprogram = p*\ncap = 1\n[rule b]\nprogram = *g\ncap = 2\n");
	write_file("xdg/spill/prog.conf", "");
	write_file("etc.conf", "[rule c]\nsize = 1..\ncap = 3\n");
	load();
	assert_string_equal(rule_names(), "a b c ");
	assert_string_equal(config.hidden, "named.conf:4: " SPILL_RULE_NEVER "named.conf:1\n"
	                                   "etc.conf:1: " SPILL_RULE_NEVER "named.conf:1");
}

/* Of the process's own rank; the command replays a log by the rank that is in it. */
TEST(rules_of_a_rank)
{
	write_file("named.conf", "[rule first]\nrank = 0\nplace = host\n[rule rest]\nrank = 1..\ncap = 1\n"
	                         "[rule all]\ncap = 2\n");
	setenv("SPILL_POLICY", "named.conf", 1);
	load();
	assert_string_equal(rule_names(), "all ");
	assert_int_equal(config.other_rules, 2);
	setenv("SLURM_PROCID", "0", 1);
	load();
	assert_string_equal(rule_names(), "first all ");
	assert_string_equal(config.hidden, "named.conf:7: " SPILL_RULE_NEVER "named.conf:1");
	setenv("RANK", "3", 1); /* torchrun's in a task of Slurm's */
	load();
	assert_string_equal(rule_names(), "rest all ");
	assert_string_equal(value("rule rest"), "rank = 1..; cap = 1");
	spill_config_load_only(&config, "prog", "0", "named.conf", NULL);
	assert_string_equal(rule_names(), "first all ");
	spill_config_load_only(&config, "prog", NULL, "named.conf", NULL);
	assert_string_equal(rule_names(), "all ");
}

/* After a problem there are none, whatever was read before it; and none is no list to look into. */
TEST(rules_after_a_problem)
{
	write_file("named.conf", "[rule a]\nplace = host\n[rule x]\nprogram = x\ncap = 1\n");
	write_file("etc.conf", "[rule b]\nplace = nowhere\n");
	setenv("SPILL_POLICY", "named.conf", 1);
	load();
	assert_problem("etc.conf:2:9: bad value 'nowhere'");
	assert_int_equal(config.rules.count, 0);
	assert_int_equal(config.other_rules, 0);
	assert_null(config.policy.rules);
	assert_string_equal(source("rule a"), "");
	write_file("etc.conf", "");
	load();
	assert_string_equal(rule_names(), "a ");
	unsetenv("SPILL_POLICY");
	load();
	assert_fine();
	assert_null(config.policy.rules);
}

static void write_rules(const char *path, const char *first, unsigned count)
{
	FILE *file = fopen(path, "w");

	assert_non_null(file);
	for (unsigned i = 0; i < count; i++)
		fprintf(file, "[rule %s%u]\ncap = 1\n", first, i);
	assert_int_equal(fclose(file), 0);
}

/* The start line has the effect of a rule, however long its match is. */
TEST(long_rule)
{
	char glob[SPILL_RULE_GLOB], text[1024];

	memset(glob, 'x', sizeof(glob) - 1);
	glob[sizeof(glob) - 1] = '\0';
	snprintf(text, sizeof(text), "[rule long]\napi = %s\ncaller = %s\nplace = host\n", glob, glob);
	write_file("named.conf", text);
	setenv("SPILL_POLICY", "named.conf", 1);
	load();
	assert_string_equal(config.problem, "");
	snprintf(text, sizeof(text), "api = %s; caller = %s; place = host", glob, glob);
	assert_string_equal(value("rule long"), text);
}

/* As many as a mask has bits; a rule more is told, not left out. */
TEST(many_rules)
{
	write_rules("named.conf", "a", 40);
	write_rules("etc.conf", "b", 24);
	setenv("SPILL_POLICY", "named.conf", 1);
	load();
	assert_fine();
	assert_int_equal(config.rules.count, 64);
	assert_string_equal(source("rule b23"), "etc.conf:47");
	write_rules("etc.conf", "b", 25);
	load();
	assert_problem("etc.conf:49:2: too many rules in all files: at most 64");
	assert_null(config.policy.rules);
	assert_int_equal(config.files[config.file_count - 1].state, SPILL_CONFIG_REFUSED);
	/* One of a name that is there already is none more. */
	write_rules("etc.conf", "a", 41);
	load();
	assert_fine();
	assert_int_equal(config.rules.count, 41);
}

/* "profile NAME:LINE" of the line of its text that begins so: the texts may change. */
static const char *in_profile(const char *name, const char *begin)
{
	static char expected[80];
	const char *text = spill_profile_find(name)->text;
	unsigned line = 1;

	for (; strncmp(text, begin, strlen(begin)); line++) {
		text = strchr(text, '\n');
		assert_non_null(text);
		text++;
	}
	snprintf(expected, sizeof(expected), "profile %s:%u", name, line);
	return expected;
}

/* The lowest source: behind all files, before the defaults; its rules behind theirs. */
TEST(profile)
{
	setenv("SPILL_PROFILE", "moe-experts", 1);
	load();
	assert_fine();
	assert_int_equal(config.policy.device_reserve.value, (uint64_t)4608 << 20);
	assert_string_equal(source("device.reserve"), in_profile("moe-experts", "reserve = 4.5GiB"));
	assert_string_equal(rule_names(), "experts ");
	assert_string_equal(source("rule experts"), in_profile("moe-experts", "[rule experts]"));
	assert_string_equal(source("spill.profile"), "environment");
	assert_string_equal(value("spill.profile"), "moe-experts");
	assert_string_equal(source("host.limit"), "default");
	assert_int_equal(config.file_count, 4);
	assert_string_equal(config.files[3].path, "profile moe-experts");
	assert_int_equal(config.files[3].state, SPILL_CONFIG_READ);

	write_file("etc.conf", "[rule mine]\nplace = host\n[device]\nreserve = 1MiB\n[app pr*]\n"
	                       "spill.profile = fit-margin\n[rule experts]\nplace = split\n");
	load();
	assert_string_equal(source("device.reserve"), "etc.conf:4");
	assert_string_equal(rule_names(), "mine experts ");
	assert_string_equal(source("rule experts"), "etc.conf:7");
	unsetenv("SPILL_PROFILE");
	load();
	assert_string_equal(source("spill.profile"), "etc.conf:6 [app pr*]");
	assert_string_equal(source("movable.enable"), in_profile("fit-margin", "enable = on"));
	/* Of a privileged program's sources, too; none is none. */
	secure = 1;
	load();
	assert_string_equal(source("movable.enable"), in_profile("fit-margin", "enable = on"));
	secure = 0;
	setenv("SPILL_PROFILE", "none", 1);
	load();
	assert_fine();
	assert_string_equal(source("movable.enable"), "default");
	assert_int_equal(config.file_count, 3);
	/* After a problem nothing of it counts. */
	setenv("SPILL_PROFILE", "fit-margins", 1);
	load();
	assert_problem("SPILL_PROFILE: bad value 'fit-margins'; it must be one of none, ");
	assert_non_null(strstr(config.problem, "the nearest is 'fit-margin'"));
	assert_string_equal(source("movable.enable"), "default");
	write_file("etc.conf", "[spill]\nprofile = fit-margin\n[host]\nlimit = x\n");
	unsetenv("SPILL_PROFILE");
	load();
	assert_problem("etc.conf:4:9: bad size");
	assert_int_equal(config.rules.count, 0);
	assert_string_equal(source("spill.profile"), "default");
}

static const char *const no_app = "an [app NAME]", *const no_profile = "spill.profile";

static void take_of_profile(void *user, unsigned slot, const char *setting, unsigned line, const char *app)
{
	const char **wrong = user;

	if (app)
		*wrong = no_app;
	if (!strcmp(spill_option_row(slot)->key, "profile"))
		*wrong = no_profile;
}

static void count_rule(void *user, const struct spill_rule *rule, unsigned line)
{
}

/* The library's text is the file's, byte for byte. */
static void compare_with_file(const struct spill_profile *profile)
{
	static char whole[1u << 16];
	char path[512];
	FILE *file;

	snprintf(path, sizeof(path), "%s/%s.conf", PROFILES, profile->name);
	file = fopen(path, "rb");
	assert_non_null(file);
	assert_int_equal(fread(whole, 1, sizeof(whole), file), profile->size);
	fclose(file);
	assert_memory_equal(whole, profile->text, profile->size);
}

/* The profile in force has a rule, or gives an option its value. */
static bool is_effective(const char *profile)
{
	char source[80];

	snprintf(source, sizeof(source), "profile %s:", profile);
	for (unsigned i = 0; i < config.option_count; i++) {
		if (!strncmp(config.options[i].source, source, strlen(source)))
			return true;
	}
	return false;
}

/* Each word but `none` is a text, each text is a word, and each text a policy that any user may have. */
TEST(every_profile)
{
	struct spill_error error;
	const struct spill_option *row =
	    spill_option_row((unsigned)spill_option_find("spill", "profile", &error));
	const struct spill_profile *profile = spill_profiles;
	char words[256] = "none", line[80];

	for (; profile->name; profile++) {
		const char *wrong = NULL;
		char problem[512];

		strcat(strcat(words, ", "), profile->name);
		assert_ptr_equal(spill_profile_find(profile->name), profile);
		compare_with_file(profile);
		if (!spill_ini_read(profile->name, profile->text, profile->size,
		                    &(struct spill_ini_taker){take_of_profile, count_rule, &wrong}, problem,
		                    sizeof(problem)))
			fail_msg("%s", problem);
		if (wrong)
			fail_msg("%s has %s", profile->name, wrong);
		snprintf(line, sizeof(line), "# %s: ", profile->name);
		assert_memory_equal(profile->text, line, strlen(line));
		setenv("SPILL_PROFILE", profile->name, 1);
		load();
		assert_fine();
		assert_true(is_effective(profile->name));
	}
	assert_string_equal(words, row->values);
	assert_null(spill_profile_find("none"));
}

static void assert_tried(unsigned index, const char *end, enum spill_config_state state)
{
	const char *path = config.files[index].path;

	assert_true(index < config.file_count && strlen(path) >= strlen(end));
	assert_string_equal(path + strlen(path) - strlen(end), end);
	assert_int_equal(config.files[index].state, state);
}

TEST(tried)
{
	use_xdg();
	write_file("named.conf", "");
	write_file("xdg/spill/spill.conf", "[host]\n");
	setenv("SPILL_POLICY", "named.conf", 1);
	load();
	assert_int_equal(config.file_count, 4);
	assert_tried(0, "named.conf", SPILL_CONFIG_READ);
	assert_tried(1, "/xdg/spill/prog.conf", SPILL_CONFIG_ABSENT);
	assert_tried(2, "/xdg/spill/spill.conf", SPILL_CONFIG_READ);
	assert_tried(3, "etc.conf", SPILL_CONFIG_ABSENT);
	write_file("xdg/spill/prog.conf", "x");
	load();
	assert_int_equal(config.file_count, 2);
	assert_tried(1, "prog.conf", SPILL_CONFIG_REFUSED);
	setenv("SPILL_POLICY", "missing.conf", 1);
	load();
	assert_int_equal(config.file_count, 1);
	assert_tried(0, "missing.conf", SPILL_CONFIG_ABSENT);
	secure = 1;
	load();
	assert_int_equal(config.file_count, 1);
	assert_tried(0, "etc.conf", SPILL_CONFIG_ABSENT);
}

TEST(order)
{
	use_xdg();
	write_file("named.conf", "[device]\nlimit = 2GiB\n[log]\nlevel = off\n");
	write_file("xdg/spill/prog.conf", "[device]\nlimit = 3GiB\nreserve = 3MiB\n[log]\nstderr = off\n");
	write_file("xdg/spill/other.conf", "[device]\nlimit = x\n");
	write_file("xdg/spill/spill.conf", "\n[device]\nreserve = 4MiB\n[host]\nlimit = 4GiB\n");
	write_file("etc.conf", "[host]\nlimit = 5GiB\nreserve = 5GiB\n");
	setenv("SPILL_POLICY", "named.conf", 1);
	setenv("SPILL_LOG_LEVEL", "spills", 1);
	load();
	assert_fine();
	assert_int_equal(config.policy.log_level, SPILL_LOG_SPILLS);
	assert_string_equal(source("log.level"), "environment");
	assert_int_equal(config.policy.device_limit.value, 2 * GIB);
	assert_string_equal(source("device.limit"), "named.conf:2");
	assert_int_equal(config.policy.device_reserve.value, 3u << 20);
	assert_non_null(strstr(source("device.reserve"), "/xdg/spill/prog.conf:3"));
	assert_int_equal(config.policy.log_stderr, SPILL_STDERR_OFF);
	assert_int_equal(config.policy.host_limit.value, 4 * GIB);
	assert_non_null(strstr(source("host.limit"), "/xdg/spill/spill.conf:5"));
	assert_int_equal(config.policy.host_reserve.value, 5 * GIB);
	assert_string_equal(source("host.reserve"), "etc.conf:3");
	assert_string_equal(source("oom.chain"), "default");
}

TEST(home)
{
	assert_int_equal(mkdir(".config", 0755) || mkdir(".config/spill", 0755), 0);
	write_file(".config/spill/spill.conf", "[device]\nlimit = 7GiB\n");
	setenv("HOME", folder, 1);
	load();
	assert_fine();
	assert_int_equal(config.policy.device_limit.value, 7 * GIB);
	setenv("XDG_CONFIG_HOME", "relative/is/no/folder", 1);
	load();
	assert_int_equal(config.policy.device_limit.value, 7 * GIB);
}

/* $XDG_CONFIG_HOME such that the path of the program's file has `length` bytes. */
static void use_xdg_of(size_t length)
{
	char path[SPILL_PATH_MAX + 64];
	size_t own = strlen("/spill/prog.conf"),
	       count = (size_t)snprintf(path, sizeof(path), "%s/xdg", folder);

	for (; count < length - own; count++)
		path[count] = '/';
	path[count] = '\0';
	setenv("XDG_CONFIG_HOME", path, 1);
}

/* What is left of a path that does not fit is another file's name. */
TEST(a_path_that_is_too_long)
{
	size_t most = SPILL_PATH_MAX - 2;

	write_file("xdg/spill/prog.conf", "[device]\nlimit = 1GiB\n");
	write_file("xdg/spill/prog.con", "[device]\nlimit = 2GiB\n");
	use_xdg_of(most);
	load();
	assert_fine();
	assert_int_equal(config.policy.device_limit.value, 1 * GIB);
	assert_int_equal(config.file_count, 2); /* that of all programs has a longer path */
	for (size_t length = most + 1; length <= most + 2; length++) {
		use_xdg_of(length);
		load();
		assert_fine();
		assert_string_equal(source("device.limit"), "default");
		assert_int_equal(config.file_count, 1);
		assert_tried(0, "etc.conf", SPILL_CONFIG_ABSENT);
	}
}

TEST(environment)
{
	setenv("SPILL_DEVICE_LIMIT", "6GiB", 1);
	setenv("SPILL_DEVICE_1_LIMIT", "1GiB", 1);
	setenv("SPILL_MODE", "observe", 1);
	setenv("SPILL_OOM_CHAIN", "", 1);
	setenv("SPILL_LOG", "off", 1);
	setenv("SPILL_SIM_VRAM", "anything", 1);
	setenv("SPILL_BUILD", "anything", 1);
	setenv("SPILL", "1", 1);
	load();
	assert_fine();
	assert_int_equal(config.policy.device_limit.value, 6 * GIB);
	assert_int_equal(config.policy.device_limits[1].value, GIB);
	assert_string_equal(value("device 1.limit"), "1GiB");
	assert_string_equal(source("device 1.limit"), "environment");
	assert_int_equal(config.policy.mode, SPILL_MODE_OBSERVE);
	assert_false(config.policy.chain.by_capability);
	assert_int_equal(config.policy.chain.count, 0);
	assert_string_equal(config.policy.log_path, "off");
	assert_string_equal(source("log.path"), "environment");
}

TEST(bad_variables)
{
	static const struct {
		const char *name, *value, *problem;
	} bad[] = {
	    {"SPILL_DEVICE_LIMIT", "4GB", "SPILL_DEVICE_LIMIT: bad size '4GB'"},
	    {"SPILL_DEVICE_40_LIMIT", "4GiB", "SPILL_DEVICE_40_LIMIT: the device number is out of range"},
	    {"SPILL_LOG_MAX", "64MB", "SPILL_LOG_MAX: bad size '64MB'"},
	    {"SPILL_MEMINFO_REPORT", "more", "SPILL_MEMINFO_REPORT: bad value 'more'"},
	    {"SPILL_MODE", "of", "SPILL_MODE: bad value 'of'"},
	    {"SPILL_PROFILE", "x",
	     "SPILL_PROFILE: bad value 'x'; it must be one of none, llama-long-context"},
	    {"SPILL_LOG", "/%z", "SPILL_LOG: a pattern knows"},
	    {"SPILL", "maybe", "SPILL: it must be 0 (off) or 1 (on)"},
	};

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		setenv(bad[i].name, bad[i].value, 1);
		load();
		assert_problem(bad[i].problem);
		unsetenv(bad[i].name);
	}
}

/* What is off has no problem: the command loads the policy all the same. */
TEST(off_is_a_good_value)
{
	setenv("SPILL", "0", 1);
	load();
	assert_fine();
	unsetenv("SPILL");
}

TEST(log_named_twice)
{
	setenv("SPILL_LOG", "off", 1);
	setenv("SPILL_LOG_PATH", "/tmp", 1);
	load();
	assert_problem("SPILL_LOG and SPILL_LOG_PATH");
}

TEST(unknown_variable)
{
	setenv("SPILL_DEVICE_LIMITS", "1GiB", 1);
	load();
	assert_string_equal(config.problem, "");
	assert_string_equal(config.warning,
	                    "SPILL_DEVICE_LIMITS: unknown variable; the nearest is SPILL_DEVICE_LIMIT");
	assert_int_equal(config.policy.mode, SPILL_MODE_SPILL);
}

/* Where the log goes and that we are off stay as the environment says, whatever else is wrong. */
TEST(problem_keeps_quiet)
{
	write_file("named.conf", "[device]\nlimt = 1\n");
	setenv("SPILL_POLICY", "named.conf", 1);
	setenv("SPILL_DEVICE_LIMIT", "1GiB", 1);
	setenv("SPILL_LOG", "off", 1);
	setenv("SPILL_LOG_STDERR", "off", 1);
	load();
	assert_problem("named.conf:2:1: unknown key 'limt'");
	assert_string_equal(config.policy.log_path, "off");
	assert_int_equal(config.policy.log_stderr, SPILL_STDERR_OFF);
	setenv("SPILL_MODE", "off", 1);
	load();
	assert_int_equal(config.policy.mode, SPILL_MODE_OFF);
	assert_string_equal(source("spill.mode"), "environment");
}

TEST(bad_files)
{
	static char big[(1u << 20) + 2];

	setenv("SPILL_POLICY", "p", 1);
	load();
	assert_problem("p: no such file");
	assert_int_equal(mkdir("p", 0755), 0);
	load();
	assert_problem("p: it is a folder");
	rmdir("p");
	/* Nobody writes to it: an open that waits would hang here. */
	assert_int_equal(mkfifo("p", 0600), 0);
	load();
	assert_problem("p: it is not a regular file");
	unlink("p");
	assert_int_equal(symlink("p", "p"), 0);
	load();
	assert_problem("p: too many symbolic links");
	unlink("p");
	memset(big, '\n', sizeof(big) - 1);
	write_file("p", big);
	load();
	assert_problem("p: the file is too long");
	setenv("SPILL_POLICY", "/dev/zero", 1);
	load();
	assert_problem("/dev/zero: it is not a regular file");
}

TEST(writable_by_others)
{
	write_file("p", "[device]\nlimit = 1GiB\n");
	setenv("SPILL_POLICY", "p", 1);
	chmod("p", 0664);
	load();
	assert_problem("p: others can write it");
	chmod("p", 0602);
	load();
	assert_problem("p: others can write it");
	chmod("p", 0644);
	load();
	assert_fine();
}

static void need_root(void)
{
	if (geteuid()) {
		print_message("needs root to give files away\n");
		skip();
	}
}

TEST(foreign_owner)
{
	need_root();
	write_file("p", "[device]\nlimit = 1GiB\n");
	setenv("SPILL_POLICY", "p", 1);
	assert_int_equal(chown("p", 12345, 0), 0);
	load();
	assert_problem("p: it belongs to another user");
	/* A file that nobody named is refused as loudly: it would have been used. */
	unsetenv("SPILL_POLICY");
	use_xdg();
	assert_int_equal(rename("p", "xdg/spill/prog.conf"), 0);
	load();
	assert_problem("prog.conf: it belongs to another user");
}

/* As another user: root's own files count, an unreadable one is a problem, a closed folder is not. */
static void as_another_user(void (*check)(void))
{
	pid_t child = fork();
	int status;

	if (!child) {
		if (setgid(12345) || setuid(12345))
			_exit(3);
		check();
		_exit(0);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 0);
}

static void expect_root_file(void)
{
	load();
	if (config.problem[0] || config.policy.device_limit.value != GIB)
		_exit(1);
}

static void expect_unreadable(void)
{
	load();
	if (!strstr(config.problem, "prog.conf: permission denied") ||
	    config.policy.mode != SPILL_MODE_OBSERVE)
		_exit(1);
}

static void expect_nothing(void)
{
	load();
	if (config.problem[0] || config.policy.device_limit.value != SPILL_UNLIMITED)
		_exit(1);
}

TEST(as_another_user)
{
	need_root();
	chmod(folder, 0755);
	use_xdg();
	write_file("xdg/spill/prog.conf", "[device]\nlimit = 1GiB\n");
	as_another_user(expect_root_file);
	chmod("xdg/spill/prog.conf", 0600);
	as_another_user(expect_unreadable);
	chmod("xdg/spill", 0700);
	as_another_user(expect_nothing);
}

TEST(symbolic_link)
{
	use_xdg();
	write_file("real.conf", "[device]\nlimit = 1GiB\n");
	assert_int_equal(symlink("../../real.conf", "xdg/spill/spill.conf"), 0);
	load();
	assert_fine();
	assert_int_equal(config.policy.device_limit.value, GIB);
}

TEST(privileged)
{
	use_xdg();
	write_file("xdg/spill/spill.conf", "[device]\nlimit = 1GiB\n");
	write_file("named.conf", "nonsense");
	write_file("etc.conf", "[host]\nlimit = 5GiB\n[log]\npath = /tmp\n[movable]\nrecord = /tmp/x\n");
	setenv("SPILL_POLICY", "named.conf", 1);
	setenv("SPILL_DEVICE_RESERVE", "nonsense", 1);
	setenv("SPILL_MODE", "off", 1);
	setenv("SPILL_NONSENSE", "1", 1);
	secure = 1;
	load();
	assert_fine();
	assert_int_equal(config.policy.mode, SPILL_MODE_SPILL);
	assert_int_equal(config.policy.device_limit.value, SPILL_UNLIMITED);
	assert_int_equal(config.policy.host_limit.value, 5 * GIB);
	assert_string_equal(config.policy.log_path, "off");
	assert_string_equal(config.policy.movable_record, "off");
	assert_string_equal(config.policy.log_metrics, "off");
	write_file("etc.conf", "nonsense");
	load();
	assert_problem("etc.conf:1:9: '=' is missing");
	assert_string_equal(config.policy.log_path, "off");
}

/* The answer is kept, so each value is asked in a process of its own. */
static bool disabled(const char *switch_value, unsigned long privileged)
{
	pid_t child = fork();
	int status;

	if (!child) {
		secure = privileged;
		if (switch_value)
			setenv("SPILL", switch_value, 1);
		bool first = spill_config_disabled();
		setenv("SPILL", first ? "1" : "0", 1); /* by the program */
		_exit(spill_config_disabled() == first ? first : 2);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFEXITED(status));
	assert_in_range(WEXITSTATUS(status), 0, 1);
	return WEXITSTATUS(status);
}

TEST(disabled)
{
	static const char *const on[] = {NULL, "", "1", "on", "yes", "true", "maybe", "00"};
	static const char *const off[] = {"0", "off", "no", "false"};

	for (size_t i = 0; i < sizeof(on) / sizeof(on[0]); i++)
		assert_false(disabled(on[i], 0));
	for (size_t i = 0; i < sizeof(off) / sizeof(off[0]); i++)
		assert_true(disabled(off[i], 0));
	assert_false(disabled("0", 1));
}

/* Descriptors and the second load: nothing is left open, nothing of the first load stays. */
TEST(again)
{
	int before = dup(0), after;

	close(before);
	setenv("SPILL_DEVICE_LIMIT", "x", 1);
	load();
	assert_problem("SPILL_DEVICE_LIMIT");
	unsetenv("SPILL_DEVICE_LIMIT");
	write_file("etc.conf", "[device]\nlimit = 1GiB\n");
	load();
	assert_fine();
	assert_int_equal(config.policy.mode, SPILL_MODE_SPILL);
	assert_int_equal(config.policy.device_limit.value, GIB);
	assert_int_equal(mkdir("xdg/spill/prog.conf", 0755), 0);
	use_xdg();
	load();
	assert_problem("it is a folder");
	after = dup(0);
	close(after);
	assert_int_equal(before, after);
}
