/* The members of each kind of line, in the order of the writer, which makes finding one a look at the next row. */
#include "record_shape.h"

#define MEMBER(key, how, must, field) \
	{ \
		.name = (key), .length = sizeof(key) - 1, .type = SPILL_MEMBER_##how, .needed = (must), \
		.offset = offsetof(SHAPE, field) \
	}
#define NEEDED(key, how, field) MEMBER(key, how, true, field)
#define OPTIONAL(key, how, field) MEMBER(key, how, false, field)
#define INNER(key, must, field, shape) \
	{ \
		.name = (key), .length = sizeof(key) - 1, .type = SPILL_MEMBER_OBJECT, .needed = (must), \
		.offset = offsetof(SHAPE, field), .of = &(shape) \
	}
#define SEVERAL(key, how, field, counted, room, shape) \
	{ \
		.name = (key), .length = sizeof(key) - 1, .type = SPILL_MEMBER_##how, \
		.offset = offsetof(SHAPE, field), .count = offsetof(SHAPE, counted), .most = (room), \
		.of = (shape) \
	}
#define SHAPED(rows) \
	{ \
		.members = (rows), .count = sizeof(rows) / sizeof((rows)[0]), .size = sizeof(SHAPE) \
	}

/* What every line begins with; the version and the kind were read before the line's shape was known. */
#define HEAD \
	{.name = "v", .length = 1, .type = SPILL_MEMBER_KNOWN}, \
	    {.name = "kind", .length = 4, .type = SPILL_MEMBER_KNOWN}, NEEDED("t", SECONDS, time_us)

#define SHAPE struct spill_bytes
static const struct spill_member sums_rows[] = {
    NEEDED("device_bytes", U64, device),
    NEEDED("host_bytes", U64, host),
    NEEDED("managed_bytes", U64, managed),
};
static const struct spill_shape sums = SHAPED(sums_rows);
#undef SHAPE

#define SHAPE struct spill_attempt
static const struct spill_member attempt_rows[] = {NEEDED("place", TEXT, place),
                                                   NEEDED("error", TEXT, error)};
static const struct spill_shape attempt = SHAPED(attempt_rows);
#undef SHAPE

#define SHAPE struct spill_holder
static const struct spill_member holder_rows[] = {
    NEEDED("seq", U64, seq),    NEEDED("bytes", U64, bytes),      NEEDED("place", PLACE, place),
    OPTIONAL("api", TEXT, api), OPTIONAL("caller", TEXT, caller),
};
static const struct spill_shape holder = SHAPED(holder_rows);
#undef SHAPE

#define SHAPE struct spill_hits
static const struct spill_member hit_rows[] = {
    NEEDED("symbol", TEXT, symbol),
    NEEDED("way", TEXT, way),
    NEEDED("count", U64, count),
};
static const struct spill_shape hit = SHAPED(hit_rows);
#undef SHAPE

#define SHAPE struct spill_record_device
static const struct spill_member device_rows[] = {
    NEEDED("dev", DEVICE, device), NEEDED("name", TEXT, name),  OPTIONAL("uuid", TEXT, uuid),
    OPTIONAL("pci", TEXT, pci),    NEEDED("bytes", U64, bytes),
};
static const struct spill_shape device = SHAPED(device_rows);
#undef SHAPE

#define SHAPE struct spill_record_option
static const struct spill_member option_rows[] = {
    NEEDED("name", TEXT, name),
    NEEDED("value", TEXT, value),
    NEEDED("source", TEXT, source),
};
static const struct spill_shape option = SHAPED(option_rows);
#undef SHAPE

#define SHAPE struct spill_record_start
static const struct spill_member rank_rows[] = {
    OPTIONAL("SLURM_PROCID", TEXT, slurm_procid),
    OPTIONAL("RANK", TEXT, rank),
    OPTIONAL("OMPI_COMM_WORLD_RANK", TEXT, ompi_rank),
};
static const struct spill_shape ranks = SHAPED(rank_rows);

static const struct spill_member start_rows[] = {
    HEAD,
    OPTIONAL("time", TEXT, time),
    OPTIONAL("boot", TEXT, boot),
    OPTIONAL("host", TEXT, host),
    NEEDED("pid", INT, pid),
    OPTIONAL("ppid", INT, ppid),
    OPTIONAL("program", TEXT, program),
    OPTIONAL("exe", TEXT, exe),
    {.name = "rank", .length = 4, .type = SPILL_MEMBER_OBJECT, .of = &ranks},
    OPTIONAL("version", TEXT, version),
    OPTIONAL("backend", TEXT, backend),
    OPTIONAL("driver", INT, driver),
    SEVERAL("devices", LIST, devices, device_count, 0, &device),
    SEVERAL("policy", LIST, policy, option_count, 0, &option),
    SEVERAL("args", LIST, args, arg_count, 0, NULL),
    OPTIONAL("cut", TRUTH, cut),
    OPTIONAL("continues", U64, continues),
};
static const struct spill_shape start = SHAPED(start_rows);
#undef SHAPE

#define ORIGIN \
	NEEDED("tid", INT, tid), OPTIONAL("dev", DEVICE, device), OPTIONAL("api", TEXT, api), \
	    OPTIONAL("caller", TEXT, caller), NEEDED("bytes", U64, bytes)
/* The first logs had no order: a member that was added to a kind is never needed. */
#define EVENT HEAD, NEEDED("seq", U64, seq), OPTIONAL("order", U64, order)

#define SHAPE struct spill_record_alloc
static const struct spill_member alloc_rows[] = {
    EVENT,
    ORIGIN,
    NEEDED("ptr", ADDRESS, ptr),
    NEEDED("place", PLACE, place),
    OPTIONAL("device_bytes", U64, held.device),
    OPTIONAL("host_bytes", U64, held.host),
    OPTIONAL("managed_bytes", U64, held.managed),
    OPTIONAL("reason", TEXT, reason),
    OPTIONAL("rule", TEXT, rule),
    OPTIONAL("would", TEXT, would),
    SEVERAL("tried", ARRAY, tried, attempts, SPILL_ATTEMPTS, &attempt),
    NEEDED("us", U64, took_us),
};
static const struct spill_shape alloc = SHAPED(alloc_rows);
#undef SHAPE

#define SHAPE struct spill_record_free
static const struct spill_member free_rows[] = {
    EVENT,
    ORIGIN,
    NEEDED("ptr", ADDRESS, ptr),
    NEEDED("place", PLACE, place),
    OPTIONAL("reason", TEXT, reason),
    NEEDED("us", U64, took_us),
};
static const struct spill_shape freed = SHAPED(free_rows);
#undef SHAPE

#define SHAPE struct spill_record_move
static const struct spill_member move_rows[] = {
    EVENT,
    NEEDED("what", TEXT, what),
    ORIGIN,
    NEEDED("chunks", COUNT, chunks),
    NEEDED("device_bytes", U64, held.device),
    NEEDED("host_bytes", U64, held.host),
    OPTIONAL("managed_bytes", U64, held.managed),
    OPTIONAL("reason", TEXT, reason),
    NEEDED("us", U64, took_us),
};
static const struct spill_shape move = SHAPED(move_rows);
#undef SHAPE

#define SHAPE struct spill_record_oom
static const struct spill_member oom_rows[] = {
    HEAD,
    ORIGIN,
    NEEDED("free", U64, free),
    NEEDED("total", U64, total),
    INNER("live", true, live, sums),
    OPTIONAL("rule", TEXT, rule),
    OPTIONAL("refused_by", TEXT, refused_by),
    OPTIONAL("would", TEXT, would),
    SEVERAL("tried", ARRAY, tried, attempts, SPILL_ATTEMPTS, &attempt),
    SEVERAL("holders", ARRAY, top, holders, SPILL_HOLDERS, &holder),
};
static const struct spill_shape oom = SHAPED(oom_rows);
#undef SHAPE

#define SHAPE struct spill_record_note
static const struct spill_member note_rows[] = {
    HEAD,
    NEEDED("tid", INT, tid),
    OPTIONAL("code", TEXT, code),
    OPTIONAL("text", TEXT, text),
};
static const struct spill_shape note = SHAPED(note_rows);
#undef SHAPE

#define SHAPE struct spill_sum
static const struct spill_member sum_rows[] = {
    NEEDED("count", U64, count),
    NEEDED("device_bytes", U64, bytes.device),
    NEEDED("host_bytes", U64, bytes.host),
    NEEDED("managed_bytes", U64, bytes.managed),
};
static const struct spill_shape sum = SHAPED(sum_rows);
#undef SHAPE

#define SHAPE struct spill_record_drop
static const struct spill_member drop_rows[] = {
    HEAD,
#define X(id, name, text) INNER(name, false, sums[SPILL_DROP_##id], sum),
    // clang-format off
    SPILL_DROPS(X)
#undef X
    // clang-format on
    INNER("peak", true, peak, sums),
};
static const struct spill_shape drop = SHAPED(drop_rows);
#undef SHAPE

#define SHAPE struct spill_record_exit
static const struct spill_member exit_rows[] = {
    HEAD,
    OPTIONAL("how", TEXT, how),
    NEEDED("allocs", U64, totals.allocs),
    NEEDED("frees", U64, totals.frees),
    NEEDED("spills", U64, totals.spills),
    NEEDED("ooms", U64, totals.ooms),
    OPTIONAL("demotions", U64, totals.demotions),
    OPTIONAL("promotions", U64, totals.promotions),
    OPTIONAL("demoted_bytes", U64, totals.demoted),
    OPTIONAL("promoted_bytes", U64, totals.promoted),
    INNER("live", true, totals.live, sums),
    INNER("peak", true, totals.peak, sums),
    INNER("spilled", true, totals.spilled, sums),
    SEVERAL("hits", LIST, hits, hit_count, 0, &hit),
};
static const struct spill_shape end = SHAPED(exit_rows);
#undef SHAPE

/* Of a kind or version that we do not know: of a note, which is the least, what all begin with. */
#define SHAPE struct spill_record_note
static const struct spill_member unknown_rows[] = {HEAD};
static const struct spill_shape unknown = SHAPED(unknown_rows);
#undef SHAPE

static const struct spill_shape *const shapes[SPILL_KINDS_COUNT + 1] = {
    [SPILL_KIND_START] = &start, [SPILL_KIND_ALLOC] = &alloc, [SPILL_KIND_FREE] = &freed,
    [SPILL_KIND_MOVE] = &move,   [SPILL_KIND_OOM] = &oom,     [SPILL_KIND_NOTE] = &note,
    [SPILL_KIND_DROP] = &drop,   [SPILL_KIND_EXIT] = &end,    [SPILL_KINDS_COUNT] = &unknown,
};

const struct spill_shape *spill_record_shape(enum spill_kind kind)
{
	return shapes[kind];
}
