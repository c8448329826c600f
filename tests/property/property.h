/*
 * Random policies and random requests, run through a small model of the engine in which every answer comes from the pure
 * functions of policy/. What must hold is said where it is looked at: model.c (captures, what fits, caps), place.c (sums),
 * retry_state.c (whose failure surfaces), compare.c (the same answer twice, and the one that expected.c comes to by itself), main.c
 * (observing).
 *
 * A case is one policy and one sequence of events, made of a seed and a number: the same numbers, the same case.
 */
#ifndef SPILL_TEST_PROPERTY_H
#define SPILL_TEST_PROPERTY_H

#include "decide.h"
#include "retry.h"
#include "rule.h"

#define DEVICES 3
#define THREADS 3
#define EVENTS 40
#define LIVE 64

/* -- chance.c --------------------------------------------------------------------------------------------- */

struct chance {
	uint64_t state;
};

uint64_t chance_any(struct chance *chance);
/* 0 to limit - 1. pre: limit is not 0 */
uint64_t chance_below(struct chance *chance, uint64_t limit);
/* True once in `times`. */
bool chance_once_in(struct chance *chance, unsigned times);

/* -- case.c ----------------------------------------------------------------------------------------------- */

enum event_kind { ALLOC, FREE, NEIGHBOUR, CAPTURE_BEGIN, CAPTURE_END, MAP, PASS_TIME };

struct event {
	enum event_kind kind;
	unsigned thread;
	unsigned caller, api; /* callers[], apis[] */
	int device;
	uint64_t bytes, weight;
	enum spill_retry operation;
	bool fixed;       /* ALLOC: a kind of memory that cannot be elsewhere */
	bool grows, idle; /* FREE: what is freed is kept for later, until TRIM */
	bool asks_again;  /* ALLOC: at once, if out of memory */
	uint64_t
	    amount; /* FREE: which of the live ones; NEIGHBOUR: bytes that it holds; PASS_TIME: microseconds */
};

extern const char *const callers[], *const apis[];

struct property_case {
	uint64_t seed, number;
	struct spill_policy policy, twin; /* twin: the same, with garbage where nobody may look */
	struct spill_rules rules, twin_rules;
	unsigned capabilities[DEVICES];
	uint64_t capacity[DEVICES];
	uint64_t host_limit, host_available;
	struct event events[EVENTS];
	unsigned at; /* the event under way */
};

/* static: it is large, and is filled again for each case. */
void case_make(struct property_case *this, uint64_t seed, uint64_t number);
void case_mode(struct property_case *this, enum spill_mode mode);

/* Says what does not hold, and how to see it again; ends the program. */
_Noreturn void case_broken(const struct property_case *this, const char *what);
static inline void must(const struct property_case *this, bool holds, const char *what)
{
	if (!holds)
		case_broken(this, what);
}

/* -- expected.c: the same answers, worked out another way ------------------------------------------------- */

/* Position of the rule that counts, or -1. */
int expected_rule(const struct spill_policy *policy, const struct event *event);
struct spill_managed_advice expected_advice(const struct spill_policy *policy, const struct spill_rule *rule);
struct spill_decision expected_decision(const struct spill_policy *policy, const struct spill_rule *rule,
                                        const struct spill_ask *ask, const struct spill_view *view);
struct spill_fallback expected_remedy(const struct spill_policy *policy, const struct spill_rule *rule,
                                      const struct spill_ask *ask, const struct spill_full_view *view);

/* A failure that surfaced, told by what happened since; one of each kind: caller, device, operation. */
#define KINDS (4 * DEVICES * 3)
struct expected_failure {
	bool is; /* there is one that nothing has ended */
	struct event event;
	uint64_t time_us;
};

unsigned expected_kind(const struct event *event);
/* Those of a thread, with one more: no more than SPILL_FAILURES are remembered. */
void expected_surfaced(struct expected_failure failures[KINDS], const struct event *event, uint64_t time_us);
/* `caller` maps: its runs of physical memory are complete. */
void expected_mapped(struct expected_failure failures[KINDS], unsigned caller);
bool expected_repeat(const struct expected_failure *failure, const struct event *event, uint64_t time_us,
                     uint64_t window_us);

/* -- compare.c: asked twice, of the twin too, and compared with what is expected -------------------------- */

const struct spill_rule *ask_rule(const struct property_case *this, const struct event *event,
                                  struct spill_ask *ask);
struct spill_decision ask_decision(const struct property_case *this, const struct spill_rule *rule,
                                   const struct spill_ask *ask, const struct spill_view *view);
struct spill_fallback ask_remedy(const struct property_case *this, const struct spill_rule *rule,
                                 const struct spill_ask *ask, const struct spill_full_view *view);

/* -- model.c ---------------------------------------------------------------------------------------------- */

struct held {
	int device;
	uint64_t weight;  /* on the device */
	uint64_t charged; /* to the rule's cap */
	uint64_t host;
	int rule; /* or -1 */
	bool movable, idle;
};

struct model {
	const struct property_case *of;
	bool plain; /* without libspill */
	uint64_t neighbours[DEVICES], device_held[DEVICES], host_held, rule_used[SPILL_RULES];
	struct held live[LIVE];
	unsigned count;
	bool capturing[THREADS];
	uint64_t time_us;
	struct spill_failure pending[THREADS][SPILL_FAILURES];
	struct expected_failure surfaced[THREADS][KINDS];
};

/* What happened at all, of all cases: what never does, is not tested. */
enum seen {
	SEEN_DRIVER,
	SEEN_PLACED,
	SEEN_PLACE_FAILED,
	SEEN_TRIMMED,
	SEEN_DEMOTED,
	SEEN_SPLIT,
	SEEN_MANAGED,
	SEEN_HOST,
	SEEN_CAPPED,
	SEEN_LIMIT,
	SEEN_REFUSED,
	SEEN_OVER,
	SEEN_SURFACED,
	SEEN_REPEAT,
	SEEN_CAPTURED,
	SEEN_RULE,
	SEEN_OUT_OF_MEMORY,
	SEEN,
};

extern uint64_t model_seen[SEEN];

void model_begin(struct model *model, const struct property_case *of, bool plain);
/* True unless it was an allocation that failed. */
bool model_event(struct model *model, const struct event *event);

/* -- place.c ---------------------------------------------------------------------------------------------- */

uint64_t model_free(const struct model *model, int device);
uint64_t model_limit(const struct model *model, int device);
uint64_t model_rule_used(const struct model *model, const struct spill_rule *rule);
void model_keep(struct model *model, struct held held);
/* An allocation elsewhere than in the driver's plain call. False: it cannot be had, and nothing is changed. */
bool model_place(struct model *model, enum spill_place place, const struct event *event,
                 const struct spill_rule *rule);
/* Gives back what is idle. */
void model_trim(struct model *model, int device);
/* What can move makes way, until `bytes` are free and within the limit. */
void model_demote(struct model *model, int device, uint64_t bytes);
void model_release(struct model *model, unsigned at);
/* No sum is above what the policy and the machine allow. */
void model_sums(const struct model *model);

/* -- retry_state.c --------------------------------------------------------------------------------------------- */

struct request {
	struct model *model;
	const struct event *event;
	const struct spill_rule *rule;
	struct spill_ask ask;
	bool capturing, had_room;
	bool surfaced;
	unsigned steps; /* taken beyond the driver's plain call */
};

bool model_says(const struct spill_rule *rule, unsigned key);
bool model_repeats(const struct request *request);
/* Its failure is told: to who may be told, and once. */
void model_surface(struct request *request, const struct spill_full_view *view);
void model_succeeded(const struct request *request);
void model_mapped(struct model *model, const struct event *event);

#endif
