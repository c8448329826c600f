/* Rules in the library: one search a call site, until a library is unloaded; and what caps are charged with. */
#define SETUP setup
#include "unit.h"

#include <string.h>

#include <pthread.h>

#include "account.h"
#include "caller.h"
#include "fake_objects.h"
#include "rules.h"
#include "process.h"

static struct spill_policy policy;
static struct spill_rules rules;

/* Addresses of liba and of libb by turns, of which there are many. */
#define EVEN 10000
#define ODD 20000

static uintptr_t site(uintptr_t number)
{
	return (number % 2 ? ODD : EVEN) + number;
}

/* What is between these is generated code. */
static void use_libraries(void)
{
	USE_FAKE_OBJECTS({0, 0, ""}, {0, 100, "/x/liba.so"}, {100, 100, "/x/libb.so"},
	                 {EVEN, 10000, "/x/liba.so"}, {ODD, 10000, "/x/libb.so"});
}

static struct spill_rule *add(const char *name, unsigned set)
{
	struct spill_rule *rule = &rules.rule[rules.count++];
	*rule = (struct spill_rule){.set = set};
	strcpy(rule->name, name);
	return rule;
}

static struct spill_request request(uintptr_t caller, const char *api, uint64_t bytes)
{
	return (struct spill_request){.caller = (const void *)caller, .api = api, .bytes = bytes};
}

static const char *applied(uintptr_t caller, const char *api, uint64_t bytes)
{
	struct spill_request asked = request(caller, api, bytes);
	spill_rules_find(&asked);
	return asked.admission.applied ? asked.admission.applied->name : "";
}

static int setup(void **state)
{
	spill_policy_default(&policy);
	rules = (struct spill_rules){0};
	policy.rules = &rules;
	spill_process_use_policy(&policy);
	use_libraries();
	spill_rules_reset();
	spill_account_reset();
	spill_fork_lock_take(&spill_growth_state_fork_lock);
	spill_fork_lock_release(&spill_growth_state_fork_lock, true);
	spill_thread.frame = NULL;
	return 0;
}

static void of_libraries(void)
{
	strcpy(add("a", SPILL_RULE_HAS_CALLER)->caller, "liba.so");
	strcpy(add("b", SPILL_RULE_HAS_CALLER)->caller, "libb.so");
	spill_rules_index(&rules);
}

TEST(a_site_is_searched_once)
{
	static const char one[] = "cuMemAlloc_v2", two[] = "cuMemCreate";
	of_libraries();
	for (int i = 0; i < 3; i++) {
		assert_string_equal(applied(5, one, 10), "a");
		assert_string_equal(applied(100, one, 10), "b");
		assert_string_equal(applied(5, two, 10), "a");
		assert_string_equal(applied(200, one, 10), "");
	}
	assert_int_equal(fake_object_looks, 4);
}

TEST(an_unload_forgets)
{
	of_libraries();
	assert_string_equal(applied(7, "x", 10), "a");
	fake_objects[1].path = "/x/libb.so";
	spill_unloads_count();
	assert_string_equal(applied(7, "x", 10), "b");
	assert_string_equal(applied(7, "x", 10), "b");
	assert_int_equal(fake_object_looks, 2);
}

/* More sites than are kept, of which many share a row: each is right all the same, by its address and by its function. */
TEST(sites_that_make_way)
{
	static char apis[5000][12];
	of_libraries();
	for (uintptr_t i = 1000; i < 6000; i++)
		assert_string_equal(applied(site(i), "x", 10), i % 2 ? "b" : "a");
	rules.count = 0;
	strcpy(add("alloc", SPILL_RULE_HAS_API)->api, "cuMemAlloc");
	strcpy(add("create", SPILL_RULE_HAS_API)->api, "cuMemCreate");
	spill_rules_index(&rules);
	for (size_t i = 0; i < 5000; i++) {
		strcpy(apis[i], i % 3 ? "cuMemAlloc" : "cuMemCreate");
		assert_string_equal(applied(5, apis[i], 10), i % 3 ? "alloc" : "create");
	}
}

static _Atomic unsigned wrong;

/* Many sites, few rows, and all threads write. */
static void *finds(void *unused)
{
	for (unsigned round = 0; round < 40; round++)
		for (uintptr_t i = 1000; i < 6000; i++)
			wrong += strcmp(applied(site(i), "x", 10), i % 2 ? "b" : "a") != 0;
	return NULL;
}

static void in_threads(void *(*run)(void *))
{
	pthread_t threads[4];
	for (int i = 0; i < 4; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, run, NULL), 0);
	for (int i = 0; i < 4; i++)
		pthread_join(threads[i], NULL);
}

TEST(threads_do_not_mix_sites)
{
	of_libraries();
	in_threads(finds);
	assert_int_equal(wrong, 0);
}

TEST(nobody_searches_where_no_rule_asks)
{
	struct spill_rule *rule = add("small", SPILL_RULE_HAS_SIZE);
	rule->most = 100;
	spill_rules_index(&rules);
	assert_string_equal(applied(5, "x", 100), "small");
	assert_string_equal(applied(5, "x", 101), "");
	assert_int_equal(fake_object_looks, 0);
}

/* Below a runtime's function the driver's is called by the runtime. */
TEST(the_outermost_call_counts)
{
	struct spill_request frame = request(100, "cudaMalloc", 10);
	of_libraries();
	strcpy(add("api", SPILL_RULE_HAS_API)->api, "cudaMalloc");
	spill_rules_index(&rules);
	spill_thread.frame = &frame;
	assert_string_equal(applied(5, "cuMemAlloc_v2", 10), "b");
	frame.caller = (const void *)200;
	assert_string_equal(applied(5, "cuMemAlloc_v2", 10), "api");
}

/* -- growth ------------------------------------------------------------------------------------------------ */

static struct spill_request grown(uintptr_t caller, uint64_t bytes)
{
	struct spill_request asked = request(caller, "x", bytes);
	spill_rules_find(&asked);
	assert_true(asked.admission.asks_growth);
	return asked;
}

TEST(growth_is_asked_without_being_told)
{
	add("growing", SPILL_RULE_HAS_GROWTH)->growth = true;
	spill_rules_index(&rules);
	for (uint64_t bytes = 10; bytes < 14; bytes++) {
		struct spill_request asked = grown(5, bytes), again = grown(5, bytes),
		                     other = grown(6, bytes);
		assert_int_equal(asked.admission.applied != NULL, bytes >= 12);
		assert_ptr_equal(again.admission.applied, asked.admission.applied);
		assert_null(other.admission.applied);
		struct spill_growth_answer told = spill_growth_state_served(&asked);
		assert_int_equal(told.grows, asked.admission.applied != NULL);
		assert_int_equal(spill_growth_state_served(&asked).run,
		                 told.run); /* one request, told once */
	}
	assert_null(grown(5, 13).admission.applied);
	/* A child has none of its parent's pools. */
	assert_non_null(grown(5, 14).admission.applied);
	spill_fork_lock_take(&spill_growth_state_fork_lock);
	spill_fork_lock_release(&spill_growth_state_fork_lock, true);
	assert_null(grown(5, 14).admission.applied);
}

/* -- caps -------------------------------------------------------------------------------------------------- */

static struct spill_request capped(uint64_t cap, uint64_t bytes)
{
	struct spill_request asked = request(5, "x", bytes);
	if (!rules.count) {
		add("capped", SPILL_RULE_HAS_CAP)->cap = cap;
		spill_rules_index(&rules);
	}
	spill_rules_find(&asked);
	return asked;
}

TEST(both_are_charged_or_none)
{
	struct spill_request asked = capped(100, 40);
	struct spill_ask ask = {.bytes = 40, .weight = 50};
	struct spill_view view = {0}, old;
	spill_rules_view(&asked, &view);
	old = view;
	assert_true(spill_rules_charge(&asked, &ask, &view));
	assert_int_equal(spill_account_rule_held(0), 40);
	assert_int_equal(spill_account_device_held(0), 50);
	struct spill_request second = capped(100, 40);
	/* Decided by what is no longer true: of the rule, of the device, of both. */
	for (unsigned stale = 1; stale < 4; stale++) {
		view = (struct spill_view){.rule_used = stale & 1 ? old.rule_used : 40,
		                           .device_used = stale & 2 ? old.device_used : 50};
		assert_false(spill_rules_charge(&second, &ask, &view));
		assert_int_equal(second.admission.charged_rule, 0);
		assert_int_equal(spill_account_rule_held(0), 40);
		assert_int_equal(spill_account_device_held(0), 50);
		assert_int_equal(view.rule_used, 40);
	}
	spill_rules_return(&asked);
	spill_rules_return(&asked);
	assert_int_equal(spill_account_rule_held(0), 0);
}

TEST(what_is_left_is_reserved)
{
	struct spill_request first = capped(100, 70), second = capped(100, 70), third = capped(100, 1);
	assert_int_equal(spill_rules_reserve(&first, 70), 70);
	assert_int_equal(spill_rules_reserve(&second, 70), 30);
	assert_int_equal(spill_rules_reserve(&third, 1), 0);
	struct spill_allocation entry = {.held = {.device = 20, .host = 50}};
	spill_rules_take_over(&second, &entry);
	assert_int_equal(entry.charged_rule, 20);
	spill_rules_return(&second);
	assert_int_equal(spill_account_rule_held(0), 90);
	/* What rounding adds on the device was not asked for. */
	entry = (struct spill_allocation){.held = {.device = 96}};
	spill_rules_take_over(&first, &entry);
	assert_int_equal(entry.charged_rule, 70);
	struct spill_request none = request(5, "x", 70);
	assert_int_equal(spill_rules_reserve(&none, 70), SPILL_UNLIMITED);
}

static _Atomic unsigned over;

static void *charges(void *unused)
{
	for (int i = 0; i < 20000; i++) {
		struct spill_request asked = capped(100, 30);
		struct spill_ask ask = {.bytes = 30, .weight = 1};
		struct spill_view view = {0};
		spill_rules_view(&asked, &view);
		bool charged = false;
		while (!charged && view.rule_used + 30 <= 100)
			charged = spill_rules_charge(&asked, &ask, &view);
		if (!charged)
			spill_rules_reserve(&asked, 30);
		over += spill_account_rule_held(0) > 100;
		spill_rules_return(&asked);
		if (charged)
			spill_account_device_return(0, 1);
	}
	return NULL;
}

TEST(threads_together_stay_below)
{
	capped(100, 30);
	in_threads(charges);
	assert_int_equal(over, 0);
	assert_int_equal(spill_account_rule_held(0), 0);
	assert_int_equal(spill_account_device_held(0), 0);
}
