/* The option table: every row, defaults, values, names, and the text of messages. */
#include "unit.h"

#include <string.h>

#include "options.h"
#include "rule_option.h"

/* Sets an option that must be refused: where, and a part of the message. */
static void refused(const char *section, const char *key, const char *value, enum spill_option_part part,
                    size_t offset, const char *message)
{
	struct spill_policy policy, before;
	struct spill_error error = {.text = "accepted"};

	spill_policy_default(&policy);
	memcpy(&before, &policy, sizeof(before));
	if (!spill_option_set(&policy, section, key, value, &error) || error.part != part ||
	    error.offset != offset || !strstr(error.text, message))
		fail_msg("[%s] %s = %s: part %d, offset %zu: %s", section, key, value, (int)error.part,
		         error.offset, error.text);
	assert_memory_equal(&before, &policy, sizeof(policy));
}

/* Sets an option and reads it back as text. */
static void takes(const char *section, const char *key, const char *value, const char *effective)
{
	struct spill_policy policy;
	struct spill_error error = {.text = ""};
	char text[128];

	spill_policy_default(&policy);
	if (spill_option_set(&policy, section, key, value, &error))
		fail_msg("[%s] %s = %s: %s", section, key, value, error.text);
	spill_option_format(&policy, (unsigned)spill_option_find(section, key, &error), text, sizeof(text));
	assert_string_equal(text, effective);
}

TEST(defaults)
{
	struct spill_policy policy;

	spill_policy_default(&policy);
	assert_int_equal(policy.mode, SPILL_MODE_SPILL);
	assert_int_equal(policy.device_limit.value, SPILL_UNLIMITED);
	assert_int_equal(policy.device_reserve.value, 64u << 20);
	assert_int_equal(policy.host_limit.kind, SPILL_AMOUNT_PERCENT);
	assert_int_equal(policy.host_limit.value, 50000);
	assert_int_equal(policy.host_reserve.value, (uint64_t)2 << 30);
	assert_true(policy.chain.by_capability);
	assert_int_equal(policy.movable_enable, SPILL_SWITCH_AUTO);
	assert_int_equal(policy.movable_min.value, 2u << 20);
	assert_int_equal(policy.movable_chunk.value, 64u << 20);
	assert_int_equal(policy.movable_above.kind, SPILL_AMOUNT_PERCENT);
	assert_int_equal(policy.movable_above.value, 50000);
	assert_int_equal(policy.movable_wait_us, 50000);
	assert_int_equal(policy.movable_follow, SPILL_FOLLOW_AUTO);
	assert_int_equal(policy.host_ahead.kind, SPILL_AMOUNT_BYTES);
	assert_int_equal(policy.host_ahead.value, 0);
	assert_true(policy.host_share);
	assert_int_equal(policy.honest_first, SPILL_HONEST_AUTO);
	assert_int_equal(policy.honest_window_us, 60000000);
	assert_int_equal(policy.advice.preferred, SPILL_LOCATION_HOST);
	assert_true(policy.advice.accessed_by_device);
	assert_false(policy.advice.accessed_by_host);
	assert_false(policy.advice.read_mostly);
	assert_int_equal(policy.advice.prefetch_below.value, (uint64_t)2 << 30);
	assert_string_equal(policy.log_path, "");
	assert_int_equal(policy.log_level, SPILL_LOG_ALL);
	assert_int_equal(policy.log_stderr, SPILL_STDERR_FIRST);
	for (int i = 0; i < SPILL_DEVICES; i++) {
		assert_int_equal(policy.device_limits[i].kind, SPILL_AMOUNT_NONE);
		assert_int_equal(policy.device_reserves[i].kind, SPILL_AMOUNT_NONE);
	}
}

/* Each row can be found by both names, its default is accepted and printed as written, or it is refused. */
TEST(every_row)
{
	struct spill_policy policy;
	struct spill_error error;
	char name[64], text[128];

	spill_policy_default(&policy);
	for (unsigned slot = 0; slot < SPILL_OPTIONS; slot++) {
		const struct spill_option *row = spill_option_row(slot);
		int found = spill_option_find(row->section, row->key, &error);

		spill_option_variable(slot, name, sizeof(name));
		assert_int_equal(found, slot);
		assert_int_equal(spill_option_find_variable(name, &error), slot);
		assert_true(spill_option_present(&policy, slot));
		spill_option_format(&policy, slot, text, sizeof(text));
		assert_string_equal(text, row->initial);
		if (row->kind != SPILL_OPTION_PATH)
			assert_int_equal(spill_option_put(&policy, slot, row->initial, &error), 0);
	}
}

TEST(values)
{
	takes("spill", "mode", "observe", "observe");
	takes("spill", "mode", "off", "off");
	takes("device", "limit", "4GiB", "4GiB");
	takes("device", "limit", "75%", "75%");
	takes("device 31", "limit", "none", "none");
	takes("device  0", "limit", "1GiB", "1GiB");
	takes("device 31", "reserve", "0", "0");
	takes("device 0", "reserve", "1GiB", "1GiB");
	takes("app llama-*", "device.reserve", "1GiB", "1GiB");
	takes("app  a program", "oom.chain", "", "");
	takes("oom", "chain", "", "");
	takes("oom", "chain", "host,split", "host, split");
	takes("oom", "chain", " managed , host", "managed, host");
	takes("oom", "chain", "trim,split", "trim, split");
	takes("oom", "chain", "auto", "auto");
	takes("oom", "chain", "trim, demote, split, managed, host", "trim, demote, split, managed, host");
	takes("oom", "chain", "demote", "demote");
	takes("movable", "enable", "on", "on");
	takes("movable", "enable", "off", "off");
	takes("movable", "min", "64KiB", "64KiB");
	takes("movable", "chunk", "2MiB", "2MiB");
	takes("movable", "chunk", "6291456", "6MiB");
	takes("movable", "chunk", "1GiB", "1GiB");
	takes("movable", "above", "0%", "0%");
	takes("movable", "above", "33.125%", "33.125%");
	takes("movable", "above", "100%", "100%");
	takes("movable", "wait", "1.5s", "1500ms");
	takes("movable", "follow", "on", "on");
	takes("movable", "follow", "off", "off");
	takes("host", "ahead", "2GiB", "2GiB");
	takes("host", "numa", "nearest", "nearest");
	takes("host", "numa", "0", "0");
	takes("host", "numa", "1023", "1023");
	takes("device", "memory", "auto", "auto");
	takes("device", "memory", "coherent", "coherent");
	takes("oom", "honest_first", "on", "on");
	takes("oom", "honest_first", "off", "off");
	takes("oom", "honest_window", "250ms", "250ms");
	takes("oom", "honest_window", "2min", "120s");
	takes("managed", "preferred", "none", "none");
	takes("managed", "accessed_by", "host, device", "device, host");
	takes("managed", "accessed_by", "host", "host");
	takes("managed", "accessed_by", "", "");
	takes("managed", "read_mostly", "yes", "yes");
	takes("meminfo", "report", "limit", "limit");
	takes("meminfo", "report", "spill", "spill");
	takes("host", "share", "yes", "yes");
	/* on and yes are one word for every option, and off and no are. */
	takes("host", "share", "off", "no");
	takes("movable", "audit", "on", "yes");
	takes("movable", "enable", "yes", "on");
	takes("oom", "honest_first", "no", "off");
	takes("log", "path", "/tmp/%h-%e-%p%%.jsonl", "/tmp/%h-%e-%p%%.jsonl");
	takes("log", "path", "~/x", "~/x");
	takes("log", "level", "spills", "spills");
	takes("log", "stderr", "off", "off");
}

TEST(bad_values)
{
	refused("spill", "mode", "observer", SPILL_PART_VALUE, 0, "the nearest is 'observe'");
	refused("spill", "mode", "", SPILL_PART_VALUE, 0,
	        "a value is missing; it must be one of spill, observe, off");
	refused("spill", "mode", "Off", SPILL_PART_VALUE, 0, "the nearest is 'off'");
	refused("device", "limit", "12 parsecs", SPILL_PART_VALUE, 2, "bad size '12 parsecs'");
	refused("device", "reserve", "5%", SPILL_PART_VALUE, 1, "no meaning");
	refused("host", "limit", "none", SPILL_PART_VALUE, 0,
	        "bad size 'none': it cannot be none; the largest is 100%");
	refused("oom", "chain", "split, hosst", SPILL_PART_VALUE, 7, "the nearest is 'host'");
	refused("oom", "chain", "split, demmote", SPILL_PART_VALUE, 7, "the nearest is 'demote'");
	refused("oom", "chain", "trim, movable", SPILL_PART_VALUE, 6, "must be one of trim, demote, split");
	refused("movable", "enable", "On", SPILL_PART_VALUE, 0, "one of auto, on, off");
	refused("movable", "follow", "true", SPILL_PART_VALUE, 0, "one of auto, on, off");
	refused("movable", "min", "50%", SPILL_PART_VALUE, 2, "no meaning");
	refused("host", "numa", "1024", SPILL_PART_VALUE, 0,
	        "bad node '1024': it must be nearest, or a number from 0 to 1023");
	refused("host", "numa", "18446744073709551616", SPILL_PART_VALUE, 0, "it must be nearest");
	refused("host", "numa", "", SPILL_PART_VALUE, 0, "it must be nearest");
	refused("host", "numa", "01", SPILL_PART_VALUE, 0, "it must be nearest");
	refused("host", "numa", "-1", SPILL_PART_VALUE, 0, "it must be nearest");
	refused("host", "numa", "1 ", SPILL_PART_VALUE, 1, "it must be nearest");
	refused("host", "numa", "0x1", SPILL_PART_VALUE, 1, "it must be nearest");
	refused("host", "numa", "Nearest", SPILL_PART_VALUE, 0, "it must be nearest");
	refused("device", "memory", "integrate", SPILL_PART_VALUE, 0, "the nearest is 'integrated'");
	refused("movable", "chunk", "3MiB", SPILL_PART_VALUE, 0, "2MiB or a multiple of it");
	refused("movable", "chunk", "1MiB", SPILL_PART_VALUE, 0, "2MiB or a multiple of it");
	refused("movable", "chunk", "0", SPILL_PART_VALUE, 0, "2MiB or a multiple of it");
	refused("movable", "chunk", "2MB", SPILL_PART_VALUE, 1, "bad size '2MB'");
	refused("movable", "chunk", "50%", SPILL_PART_VALUE, 2, "no meaning");
	refused("movable", "above", "4GiB", SPILL_PART_VALUE, 4, "bad share '4GiB': it must be a percentage");
	refused("movable", "above", "50", SPILL_PART_VALUE, 2, "bad share '50': it must be a percentage");
	refused("movable", "above", "101%", SPILL_PART_VALUE, 0, "bad size '101%'");
	refused("movable", "above", "none", SPILL_PART_VALUE, 0, "bad size 'none'");
	refused("movable", "wait", "50", SPILL_PART_VALUE, 2, "bad time '50': a unit must follow");
	refused("host", "ahead", "50%", SPILL_PART_VALUE, 2, "no meaning");
	refused("oom", "chain", "split, split", SPILL_PART_VALUE, 7, "twice");
	refused("oom", "chain", "split,", SPILL_PART_VALUE, 6, "missing");
	refused("oom", "chain", "split,,host", SPILL_PART_VALUE, 6, "missing");
	refused("oom", "chain", "split, managed, host, split, split", SPILL_PART_VALUE, 22, "twice");
	refused("oom", "honest_first", "1", SPILL_PART_VALUE, 0, "one of auto, on, off");
	refused("oom", "honest_window", "60", SPILL_PART_VALUE, 2, "bad time '60': a unit must follow");
	refused("oom", "honest_window", "60sec", SPILL_PART_VALUE, 2, "units are us, ms, s, min, h");
	refused("oom", "honest_window", "", SPILL_PART_VALUE, 0, "a number must come first");
	refused("managed", "accessed_by", "gpu", SPILL_PART_VALUE, 0, "one of device, host");
	refused("managed", "read_mostly", "true", SPILL_PART_VALUE, 0, "yes, no");
	refused("log", "path", "", SPILL_PART_VALUE, 0, "missing");
	refused("log", "path", "~me/x", SPILL_PART_VALUE, 0, "~/");
	refused("log", "path", "/x/%q", SPILL_PART_VALUE, 3, "pattern");
	refused("log", "path", "/x/%", SPILL_PART_VALUE, 3, "pattern");
}

TEST(long_path)
{
	static char path[SPILL_PATH_MAX + 1];

	memset(path, 'a', SPILL_PATH_MAX);
	refused("log", "path", path, SPILL_PART_VALUE, 0, "too long");
	path[SPILL_PATH_MAX - 1] = '\0';
	struct spill_policy policy;
	struct spill_error error;

	assert_int_equal(spill_option_set(&policy, "log", "path", path, &error), 0);
	assert_string_equal(policy.log_path, path);
}

TEST(bad_names)
{
	refused("devcie", "limit", "1", SPILL_PART_SECTION, 0,
	        "unknown section 'devcie'; the nearest is [device]");
	refused("quux", "limit", "1", SPILL_PART_SECTION, 0, "unknown section 'quux'");
	refused("device", "limti", "1", SPILL_PART_KEY, 0,
	        "unknown key 'limti' in [device]; the nearest is 'limit'");
	refused("log", "chunks", "1", SPILL_PART_KEY, 0,
	        "unknown key 'chunks' in [log]; the nearest is 'path'");
	refused("movable", "folow", "on", SPILL_PART_KEY, 0,
	        "unknown key 'folow' in [movable]; the nearest is 'follow'");
	refused("device", "chain", "split", SPILL_PART_KEY, 0, "the nearest is 'chain' in [oom]");
	refused("device", "priority", "hot", SPILL_PART_KEY, 0,
	        "unknown key 'priority' in [device]; the nearest is 'priority' in [rule NAME]");
	refused("device 1", "reserv", "1", SPILL_PART_KEY, 0,
	        "'reserv' cannot be set for one device; the nearest is 'reserve'");
	refused("device 32", "limit", "1", SPILL_PART_SECTION, 7, "out of range: 0 to 31");
	refused("device 99999999999999999999", "limit", "1", SPILL_PART_SECTION, 7, "out of range");
	refused("device 01", "limit", "1", SPILL_PART_SECTION, 7, "bad device number '01'");
	refused("device -1", "limit", "1", SPILL_PART_SECTION, 7, "bad device number");
	refused("device ", "limit", "1", SPILL_PART_SECTION, 7, "bad device number");
	refused("rule", "size", "1", SPILL_PART_SECTION, 4, "name is missing: write [rule NAME]");
	refused("rule 0123456789012345678901234567890123456789012345", "size", "1", SPILL_PART_SECTION, 5,
	        "the rule's name is too long");
	refused("ruel big", "size", "1", SPILL_PART_SECTION, 0, "the nearest is [rule NAME]");
	refused("log", "keep", "", SPILL_PART_VALUE, 0, "bad number '': empty");
	refused("log", "keep", "-1", SPILL_PART_VALUE, 0, "bad number '-1': not a whole number");
	refused("log", "keep", "5x", SPILL_PART_VALUE, 1, "bad number '5x': not a whole number");
	refused("log", "keep", "4294967296", SPILL_PART_VALUE, 10, "bad number '4294967296': too large");
	refused("log", "max", "64MB", SPILL_PART_VALUE, 2, "bad size '64MB'");
	refused("log", "max", "none", SPILL_PART_VALUE, 0,
	        "bad size 'none': it must be a size; it cannot be none");
	refused("meminfo", "report", "all", SPILL_PART_VALUE, 0,
	        "bad value 'all'; it must be one of honest, limit, spill");
	refused("spill", "profile", "growing-pools", SPILL_PART_VALUE, 0, "the nearest is 'growing-pool'");
}

/* Each key of [device N] has a field for each device, its own. */
TEST(devices)
{
	struct spill_policy policy, expected;
	struct spill_error error;

	spill_policy_default(&policy);
	spill_policy_default(&expected);
	assert_int_equal(spill_option_set(&policy, "device 2", "limit", "1GiB", &error), 0);
	assert_int_equal(spill_option_set(&policy, "device 31", "reserve", "2MiB", &error), 0);
	/* By their members: padding is no amount. */
	for (int i = 0; i < SPILL_DEVICES; i++) {
		assert_int_equal(policy.device_limits[i].kind,
		                 i == 2 ? SPILL_AMOUNT_BYTES : SPILL_AMOUNT_NONE);
		assert_int_equal(policy.device_limits[i].value, i == 2 ? 1u << 30 : 0);
		assert_int_equal(policy.device_reserves[i].kind,
		                 i == 31 ? SPILL_AMOUNT_BYTES : SPILL_AMOUNT_NONE);
		assert_int_equal(policy.device_reserves[i].value, i == 31 ? 2u << 20 : 0);
	}
	for (unsigned slot = SPILL_OPTIONS; slot < SPILL_OPTION_SLOTS; slot++) {
		unsigned place = slot - SPILL_OPTIONS;

		assert_int_equal(spill_option_present(&policy, slot),
		                 place == 2 || place == SPILL_DEVICES + 31);
		assert_false(spill_option_present(&expected, slot));
	}
	for (unsigned slot = 0; slot < SPILL_OPTIONS; slot++) {
		char text[256], usual[256];

		spill_option_format(&policy, slot, text, sizeof(text));
		spill_option_format(&expected, slot, usual, sizeof(usual));
		assert_string_equal(text, usual);
	}
}

/* A key of [app NAME] is the whole name of the option that it sets. */
TEST(app)
{
	struct spill_error error;

	assert_string_equal(spill_option_app("app  llama-*"), "llama-*");
	assert_null(spill_option_app("apps x"));
	assert_null(spill_option_app("device 1"));
	assert_int_equal(spill_option_find("app x", "log.path", &error),
	                 spill_option_find("log", "path", &error));
	refused("app", "log.path", "x", SPILL_PART_SECTION, 3, "name is missing: write [app NAME]");
	refused("app /bin/x", "log.path", "x", SPILL_PART_SECTION, 4, "has no folder");
	refused("apps x", "log.path", "x", SPILL_PART_SECTION, 0, "the nearest is [app NAME]");
	refused("app x", "limit", "1", SPILL_PART_KEY, 0,
	        "unknown key 'limit' in [app NAME]; the nearest is 'device.limit'");
	refused("app x", "device.limti", "1", SPILL_PART_KEY, 0, "the nearest is 'device.limit'");
	refused("app x", "device 1.limit", "1", SPILL_PART_KEY, 0,
	        "'device 1.limit' cannot be set for one program; the nearest is 'device.limit'");
	refused("app x", "device 0.limit", "1", SPILL_PART_KEY, 0,
	        "'device 0.limit' cannot be set for one program; the nearest is 'device.limit'");
	refused("app x", "place", "host", SPILL_PART_KEY, 0,
	        "'place' is no option; a rule for one program is [rule NAME] with program = NAME");
	refused("app x", "rule.size", "1", SPILL_PART_KEY, 0,
	        "a rule for one program is [rule NAME] with program = NAME");
	refused("app x", "device.limit", "4GB", SPILL_PART_VALUE, 1, "bad size '4GB'");
}

TEST(variables)
{
	struct spill_error error;
	char name[64];

	assert_int_equal(spill_option_find_variable("SPILL_DEVICE_1_LIMIT", &error), SPILL_OPTIONS + 1);
	assert_int_equal(spill_option_find_variable("SPILL_DEVICE_31_LIMIT", &error), SPILL_OPTIONS + 31);
	assert_int_equal(spill_option_find_variable("SPILL_DEVICE_32_LIMIT", &error), -2);
	assert_non_null(strstr(error.text, "out of range"));
	assert_int_equal(spill_option_find_variable("SPILL_DEVICE_0_RESERVE", &error),
	                 SPILL_OPTIONS + SPILL_DEVICES);
	assert_int_equal(spill_option_find_variable("SPILL_DEVICE_31_RESERVE", &error),
	                 SPILL_OPTION_SLOTS - 1);
	assert_int_equal(spill_option_find_variable("SPILL_DEVICE_32_RESERVE", &error), -2);
	assert_int_equal(spill_option_find_variable("SPILL_DEVICE_1_RESERVES", &error), -1);
	assert_int_equal(spill_option_find_variable("SPILL_DEVICE_01_LIMIT", &error), -1);
	assert_int_equal(spill_option_find_variable("SPILL_DEVICE__LIMIT", &error), -1);
	assert_true(spill_option_find_variable("SPILL_MEMINFO_REPORT", &error) >= 0);
	assert_int_equal(spill_option_find_variable("SPILL_DEVICE_LIMITS", &error), -1);
	assert_non_null(strstr(error.text, "the nearest is SPILL_DEVICE_LIMIT"));
	assert_int_equal(spill_option_find_variable("SPILL_POLICI", &error), -1);
	assert_non_null(strstr(error.text, "the nearest is SPILL_POLICY"));
	assert_int_equal(spill_option_find_variable("SPILL_RULE_SIZE", &error), -1);
	assert_string_equal(error.text, "unknown variable; a rule is [rule NAME] in a policy file");
	/* Not that of all devices. */
	assert_int_equal(spill_option_find_variable("SPILL_DEVICE_3_LIMT", &error), -1);
	assert_string_equal(error.text, "unknown variable; the nearest is SPILL_DEVICE_3_LIMIT");
	assert_int_equal(spill_option_find_variable("SPILL_DEVICE_31_RESERV", &error), -1);
	assert_string_equal(error.text, "unknown variable; the nearest is SPILL_DEVICE_31_RESERVE");
	assert_int_equal(spill_option_find_variable("SPILL_DEVICE_32_LIMT", &error), -1);
	assert_string_equal(error.text, "unknown variable; the nearest is SPILL_DEVICE_LIMIT");
	spill_option_variable(SPILL_OPTIONS + 7, name, sizeof(name));
	assert_string_equal(name, "SPILL_DEVICE_7_LIMIT");
	spill_option_name(SPILL_OPTIONS + 7, name, sizeof(name));
	assert_string_equal(name, "device 7.limit");
	spill_option_variable(SPILL_OPTION_SLOTS - 1, name, sizeof(name));
	assert_string_equal(name, "SPILL_DEVICE_31_RESERVE");
	assert_true(spill_option_find_variable("SPILL_MODE", &error) >= 0);
}

/* A message is cut, never overrun, whatever the user wrote; control characters do not reach a terminal. */
TEST(messages_are_bounded)
{
	char word[2000];
	struct spill_policy policy;
	struct spill_error error;

	memset(word, '\x1b', sizeof(word) - 1);
	word[sizeof(word) - 1] = '\0';
	assert_int_equal(spill_option_set(&policy, word, "x", "y", &error), -1);
	assert_true(strlen(error.text) < sizeof(error.text));
	assert_null(strchr(error.text, '\x1b'));
	assert_int_equal(spill_option_set(&policy, "device", word, "y", &error), -1);
	assert_true(strlen(error.text) < sizeof(error.text));
	assert_int_equal(spill_option_set(&policy, "device", "limit", word, &error), -1);
	assert_null(strchr(error.text, '\x1b'));
	/* C1 as well; U+00A0 is shown, and what is no character is not. */
	assert_int_equal(spill_option_set(&policy, "device", "limit",
	                                  "1\xc2\x9b"
	                                  "5m\xc2\xa0\xc2",
	                                  &error),
	                 -1);
	assert_non_null(strstr(error.text, "'1?5m\xc2\xa0?'"));
}

static unsigned rule_row(const char *key)
{
	struct spill_error error;
	int row = spill_rule_option_find(key, &error);

	if (row < 0)
		fail_msg("%s", error.text);
	return (unsigned)row;
}

/* Sets a rule's key and reads it back as text. */
static void rule_takes(const char *key, const char *value, const char *effective)
{
	struct spill_rule rule = {.set = 0};
	struct spill_error error;
	char text[SPILL_RULE_TEXT], expected[SPILL_RULE_TEXT];

	if (spill_rule_option_put(&rule, rule_row(key), value, &error))
		fail_msg("%s = %s: %s", key, value, error.text);
	spill_rule_option_format(&rule, rule_row(key), text, sizeof(text));
	assert_string_equal(text, effective);
	assert_int_equal(rule.set, spill_rule_option_row(rule_row(key))->bit);
	strcat(strcat(strcpy(expected, key), " = "), effective);
	assert_int_equal(spill_rule_format(&rule, text, sizeof(text)), strlen(expected));
	assert_string_equal(text, expected);
}

static void rule_refuses(const char *key, const char *value, size_t offset, const char *message)
{
	struct spill_rule rule, before;
	struct spill_error error = {.text = "accepted"};

	memset(&rule, 0xa5, sizeof(rule));
	before = rule;
	if (!spill_rule_option_put(&rule, rule_row(key), value, &error) || error.part != SPILL_PART_VALUE ||
	    error.offset != offset || !strstr(error.text, message))
		fail_msg("%s = %s: offset %zu: %s", key, value, error.offset, error.text);
	assert_memory_equal(&before, &rule, sizeof(rule));
}

TEST(rule_values)
{
	rule_takes("size", "1MiB..2GiB", "1MiB..2GiB");
	rule_takes("size", "1.5GiB..", "1536MiB..");
	rule_takes("size", "0..", "0..");
	rule_takes("size", "..2GiB", "..2GiB");
	rule_takes("size", "0..2GiB", "..2GiB");
	rule_takes("size", "..0", "0");
	rule_takes("size", "7", "7");
	rule_takes("size", "1GiB..1024MiB", "1GiB");
	rule_takes("api", "cuMem*", "cuMem*");
	rule_takes("caller", "/opt/*/libx.so*", "/opt/*/libx.so*");
	rule_takes("device", "31", "31");
	rule_takes("device", "2,0 , 31", "0, 2, 31");
	rule_takes("program", "llama-*", "llama-*");
	rule_takes("rank", "0", "0");
	rule_takes("rank", "7 ,0..3, 10000..", "7, 0..3, 10000..");
	rule_takes("rank", "..3, 4..4", "0..3, 4");
	rule_takes("rank", "0..", "0..");
	rule_takes("rank", "999999999,1,2,3,4,5,6,7", "999999999, 1, 2, 3, 4, 5, 6, 7");
	rule_takes("growth", "yes", "yes");
	rule_takes("growth", "no", "no");
	rule_takes("place", "device", "device");
	rule_takes("place", "movable", "movable");
	rule_takes("place", "split", "split");
	rule_takes("place", "managed", "managed");
	rule_takes("place", "host", "host");
	rule_takes("place", "refuse", "refuse");
	rule_takes("over", "split", "split");
	rule_takes("over", "managed", "managed");
	rule_takes("over", "host", "host");
	rule_takes("over", "refuse", "refuse");
	rule_takes("cap", "0", "0");
	rule_takes("cap", "4.5GiB", "4608MiB");
	rule_takes("priority", "cold", "cold");
	rule_takes("priority", "hot", "hot");
	rule_takes("prefetch", "on", "on");
	rule_takes("honest", "off", "off");
	rule_takes("managed.preferred", "device", "device");
	rule_takes("managed.accessed_by", "host, device", "device, host");
	rule_takes("managed.accessed_by", "", "");
	rule_takes("managed.read_mostly", "yes", "yes");
	rule_takes("managed.prefetch_below", "2GiB", "2GiB");
}

/* The words are in the order of the enums. */
TEST(rule_fields)
{
	static const char *const places[] = {"device", "movable", "split", "managed", "host", "refuse"};
	static const char *const priorities[] = {"cold", "normal", "hot"};
	struct spill_rule rule = {.set = 0};
	struct spill_error error;

	for (unsigned i = 0; i < 6; i++) {
		assert_int_equal(spill_rule_option_put(&rule, rule_row("place"), places[i], &error), 0);
		assert_int_equal(rule.place, i);
		assert_int_equal(spill_rule_option_put(&rule, rule_row("over"), places[i], &error),
		                 i < SPILL_RULE_SPLIT ? -1 : 0);
		assert_true(i < SPILL_RULE_SPLIT || rule.over == i);
	}
	for (unsigned i = 0; i < 3; i++) {
		assert_int_equal(spill_rule_option_put(&rule, rule_row("priority"), priorities[i], &error),
		                 0);
		assert_int_equal(rule.priority, i);
	}
	assert_int_equal(spill_rule_option_put(&rule, rule_row("size"), "2..3", &error), 0);
	assert_int_equal(rule.least, 2);
	assert_int_equal(rule.most, 3);
	assert_int_equal(spill_rule_option_put(&rule, rule_row("size"), "2..", &error), 0);
	assert_int_equal(rule.most, SPILL_UNLIMITED);
	assert_int_equal(spill_rule_option_put(&rule, rule_row("device"), "0, 31", &error), 0);
	assert_int_equal(rule.devices, 0x80000001u);
	assert_int_equal(spill_rule_option_put(&rule, rule_row("prefetch"), "on", &error), 0);
	assert_true(rule.prefetch);
	assert_int_equal(spill_rule_option_put(&rule, rule_row("honest"), "off", &error), 0);
	assert_false(rule.honest);
}

TEST(bad_rule_values)
{
	char pattern[SPILL_RULE_GLOB + 1];

	rule_refuses("size", "", 0, "bad size ''");
	rule_refuses("size", "..", 2, "one of its ends must be there");
	rule_refuses("size", "1MiB...2GiB", 6, "bad range '1MiB...2GiB': a number must come first");
	rule_refuses("size", "1MB..2GiB", 1, "write MiB; units are B, KiB");
	rule_refuses("size", "1MiB..2GB", 7, "write GiB; units are B, KiB");
	rule_refuses("size", "2..1", 0, "it is empty");
	rule_refuses("size", "50%..", 2, "no meaning");
	rule_refuses("size", "1..99999999999999999999", 3, "the number is too large");
	rule_refuses("device", "", 0, "bad device number ''");
	rule_refuses("device", "0,", 2, "bad device number ''");
	rule_refuses("device", "0,,1", 2, "bad device number ''");
	rule_refuses("device", "0, 01", 3, "bad device number '01'");
	rule_refuses("device", "all", 0, "bad device number 'all'");
	rule_refuses("device", "1, 0, 1", 6, "'1' is in the list twice");
	rule_refuses("device", "32", 0, "out of range: 0 to 31");
	rule_refuses("rank", "", 0, "bad rank ''");
	rule_refuses("rank", "0,", 2, "bad rank ''");
	rule_refuses("rank", "0, ..", 3, "bad rank '..': write 0, 8..15, 8.. or ..15");
	rule_refuses("rank", "1..2..3", 0, "bad rank '1..2..3'");
	rule_refuses("rank", "0, -1", 3, "bad rank '-1'");
	rule_refuses("rank", "0-3", 0, "bad rank '0-3'");
	rule_refuses("rank", "0, 3..2", 3, "the first rank is more than the last");
	rule_refuses("rank", "1000000000", 0, "bad rank");
	rule_refuses("rank", "0,1,2,3,4,5,6,7,8", 16, "at most 8 ranks");
	rule_refuses("api", "", 0, "a pattern is missing");
	rule_refuses("program", "/bin/x", 0, "a program's name has no folder");
	rule_refuses("growth", "auto", 0, "one of yes, no");
	rule_refuses("prefetch", "yess", 0, "one of on, off");
	rule_refuses("over", "movable", 0, "one of split, managed, host, refuse");
	rule_refuses("cap", "50%", 2, "no meaning");
	rule_refuses("cap", "none", 0, "bad size 'none'");
	rule_refuses("priority", "high", 0, "one of cold, normal, hot");
	rule_refuses("managed.accessed_by", "gpu", 0, "one of device, host");
	memset(pattern, 'a', sizeof(pattern));
	pattern[SPILL_RULE_GLOB] = '\0';
	rule_refuses("caller", pattern, 0, "the pattern is too long: at most 255 bytes");
	pattern[SPILL_RULE_GLOB - 1] = '\0';
	rule_takes("caller", pattern, pattern);
}

/* Each bit is one key's, those from `place` on are acts, and the longest rule fits. */
TEST(rule_rows)
{
	static const char *const long_keys[] = {"api", "caller", "program"};
	char pattern[SPILL_RULE_GLOB], text[SPILL_RULE_TEXT];
	struct spill_rule rule = {.set = 0};
	struct spill_error error;
	unsigned bits = 0;

	for (unsigned row = 0; row < SPILL_RULE_OPTIONS; row++) {
		unsigned bit = spill_rule_option_row(row)->bit;

		assert_int_equal(bits & bit, 0);
		bits |= bit;
		rule.set = bit;
		assert_int_equal(spill_rule_check(&rule, &error), bit >= SPILL_RULE_HAS_PLACE);
	}
	assert_int_equal(bits, 0x1ffff);
	memset(pattern, 'a', sizeof(pattern));
	pattern[SPILL_RULE_GLOB - 1] = '\0';
	memset(&rule, 0, sizeof(rule));
	rule.devices = ~0u;
	rule.least = rule.cap = rule.most = UINT64_MAX - 1;
	rule.over = SPILL_RULE_SPLIT;
	rule.advice.accessed_by_device = rule.advice.accessed_by_host = true;
	rule.advice.prefetch_below = (struct spill_amount){SPILL_AMOUNT_BYTES, UINT64_MAX - 1};
	for (unsigned i = 0; i < 3; i++)
		assert_int_equal(spill_rule_option_put(&rule, rule_row(long_keys[i]), pattern, &error), 0);
	rule.set = bits;
	assert_true(spill_rule_format(&rule, text, sizeof(text)) < sizeof(text) - 1);
}
