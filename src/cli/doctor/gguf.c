#include "gguf.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli.h"

/* Of all parts of a model. A file with holes can have any number of them, and takes no memory. */
#define MOST_KEYS (1u << 16)
#define MOST_TENSORS (1u << 20)
#define MOST_ELEMENTS (1u << 24) /* of arrays that are read one by one; a vocabulary has some 2^18 */
#define MOST_PARTS 999
#define NAME 256
#define DEFAULT_ALIGNMENT 32

static const char damaged[] = "it is damaged, or of another kind";

/* -- bytes ------------------------------------------------------------------------------------ */

struct reader {
	int fd;
	uint64_t size, at;
	uint64_t begin; /* of the bytes in `buffer` */
	size_t have;
	bool bad;
	unsigned char buffer[1 << 16];
};

static void skip(struct reader *in, uint64_t count)
{
	in->bad = in->bad || count > in->size - in->at;
	in->at += in->bad ? 0 : count;
}

/* Zeros if the file is bad. pre: count <= sizeof(in->buffer) */
static void get(struct reader *in, void *to, size_t count)
{
	uint64_t from = in->at;
	memset(to, 0, count);
	skip(in, count);
	if (in->bad)
		return;
	if (from < in->begin || from + count > in->begin + in->have) {
		ssize_t got = pread(in->fd, in->buffer, sizeof(in->buffer), (off_t)from);
		in->begin = from;
		in->have = got > 0 ? (size_t)got : 0;
	}
	in->bad = in->have < from - in->begin + count; /* the file has shrunk */
	if (!in->bad)
		memcpy(to, in->buffer + (from - in->begin), count);
}

/* Little-endian, like all machines that libspill runs on. */
static uint64_t get_number(struct reader *in, size_t bytes)
{
	uint64_t value = 0;
	get(in, &value, bytes);
	return value;
}

/* Stores the start of a long string. */
static void get_string(struct reader *in, char text[NAME])
{
	uint64_t length = get_number(in, 8);
	size_t kept = length < NAME ? (size_t)length : NAME - 1;
	get(in, text, kept);
	text[kept] = '\0';
	skip(in, length - kept);
}

/* -- keys ------------------------------------------------------------------------------------- */

enum { TYPE_STRING = 8, TYPE_ARRAY = 9, TYPES = 13 };

/* Bytes of a value; 0: of another form. */
static const unsigned char value_bytes[TYPES] = {1, 1, 2, 2, 4, 4, 4, 1, 0, 0, 8, 8, 8};

/* The architecture's numbers, behind the first point of the key ("llama.block_count"). */
struct numbers {
	uint64_t layers, embedding, heads, kv_heads, kv_heads_of_all, key, value, rank, rope, experts, align;
	uint64_t keys, tensors, elements; /* that were read */
};

static const struct {
	const char *key;
	size_t offset;
} wanted[] = {
    {"block_count", offsetof(struct numbers, layers)},
    {"embedding_length", offsetof(struct numbers, embedding)},
    {"attention.head_count", offsetof(struct numbers, heads)},
    {"attention.head_count_kv", offsetof(struct numbers, kv_heads)},
    {"attention.key_length", offsetof(struct numbers, key)},
    {"attention.value_length", offsetof(struct numbers, value)},
    {"attention.kv_lora_rank", offsetof(struct numbers, rank)},
    {"rope.dimension_count", offsetof(struct numbers, rope)},
    {"expert_count", offsetof(struct numbers, experts)},
    {"alignment", offsetof(struct numbers, align)},
};

static uint64_t *find_wanted(struct numbers *numbers, const char *key)
{
	const char *point = strchr(key, '.');
	for (size_t i = 0; point && i < sizeof(wanted) / sizeof(wanted[0]); i++) {
		if (!strcmp(point + 1, wanted[i].key))
			return (uint64_t *)((char *)numbers + wanted[i].offset);
	}
	return NULL;
}

/* An array of small values has one for each layer; only the heads' are wanted, as a sum. */
static void read_array(struct reader *in, struct numbers *numbers, const uint64_t *into)
{
	uint64_t type = get_number(in, 4), count = get_number(in, 8);
	char text[NAME];
	if (type < TYPES && value_bytes[type] && into != &numbers->kv_heads) {
		in->bad = in->bad || count > in->size / value_bytes[type];
		skip(in, in->bad ? 0 : count * value_bytes[type]);
		return;
	}
	in->bad = in->bad || type > TYPE_STRING || count > MOST_ELEMENTS - numbers->elements;
	numbers->elements += in->bad ? 0 : count;
	for (uint64_t i = 0; i < count && !in->bad; i++) {
		if (type == TYPE_STRING)
			get_string(in, text);
		else
			numbers->kv_heads_of_all += get_number(in, value_bytes[type]);
	}
}

static void read_key(struct reader *in, struct numbers *numbers)
{
	char key[NAME], text[NAME];
	get_string(in, key);
	uint64_t type = get_number(in, 4), *into = find_wanted(numbers, key);
	if (type == TYPE_ARRAY) {
		read_array(in, numbers, into);
	} else if (type == TYPE_STRING) {
		get_string(in, text);
	} else if (type < TYPES) {
		uint64_t value = get_number(in, value_bytes[type]);
		if (into)
			*into = value;
	} else {
		in->bad = true;
	}
}

/* -- tensors ---------------------------------------------------------------------------------- */

enum kind { LAYER, OUTPUT, EMBEDDING, OTHER, KINDS };

struct tensor {
	uint64_t offset;
	enum kind kind;
};

static void read_tensor(struct reader *in, struct tensor *tensor)
{
	char name[NAME];
	get_string(in, name);
	uint64_t dimensions = get_number(in, 4);
	skip(in, dimensions * 8 + 4); /* at most 2^35, so this does not overflow */
	tensor->offset = get_number(in, 8);
	tensor->kind = !strncmp(name, "blk.", 4)            ? LAYER
	               : !strcmp(name, "output.weight")     ? OUTPUT
	               : !strcmp(name, "token_embd.weight") ? EMBEDDING
	                                                    : OTHER;
}

static int compare_offsets(const void *left, const void *right)
{
	const struct tensor *a = left, *b = right;
	return (a->offset > b->offset) - (a->offset < b->offset);
}

/* A tensor ends where the next one begins. */
static void add_sizes(struct tensor *tensors, uint64_t count, uint64_t data_bytes, uint64_t sizes[KINDS])
{
	qsort(tensors, count, sizeof(*tensors), compare_offsets);
	for (uint64_t i = 0; i < count; i++) {
		uint64_t end = i + 1 < count ? tensors[i + 1].offset : data_bytes;
		end = end < data_bytes ? end : data_bytes;
		sizes[tensors[i].kind] += end > tensors[i].offset ? end - tensors[i].offset : 0;
	}
}

/* -- files ------------------------------------------------------------------------------------ */

static const char *read_header(struct reader *in, struct numbers *numbers, uint64_t sizes[KINDS])
{
	uint64_t magic = get_number(in, 4), version = get_number(in, 4);
	uint64_t count = get_number(in, 8), keys = get_number(in, 8);
	if (in->bad || magic != 0x46554747) /* "GGUF" */
		return "it is no GGUF file";
	if (version < 2 || version > 3 || keys > MOST_KEYS - numbers->keys ||
	    count > MOST_TENSORS - numbers->tensors)
		return damaged;
	numbers->keys += keys;
	numbers->tensors += count;
	for (uint64_t i = 0; i < keys && !in->bad; i++)
		read_key(in, numbers);
	struct tensor *tensors = cli_realloc(NULL, count + 1, sizeof(*tensors));
	for (uint64_t i = 0; i < count && !in->bad; i++)
		read_tensor(in, &tensors[i]);
	uint64_t align = numbers->align ? numbers->align : DEFAULT_ALIGNMENT, over = in->at % align;
	skip(in, count && over ? align - over : 0);
	if (!in->bad)
		add_sizes(tensors, count, in->size - in->at, sizes);
	free(tensors);
	return in->bad ? damaged : NULL;
}

static const char *read_file(const char *path, struct numbers *numbers, uint64_t sizes[KINDS])
{
	static struct reader in; /* 64 KiB */
	struct stat status;
	int error;
	in = (struct reader){.fd = cli_open(path, CLI_REGULAR, &error)};
	if (in.fd < 0)
		return cli_open_text(error);
	in.bad = fstat(in.fd, &status) != 0;
	in.size = in.bad ? 0 : (uint64_t)status.st_size;
	const char *problem = read_header(&in, numbers, sizes);
	close(in.fd);
	return problem;
}

/* The number of five digits; 0 if they are none. */
static unsigned five_digits(const char *text)
{
	unsigned number = 0;
	for (unsigned i = 0; i < 5; i++) {
		if (text[i] < '0' || text[i] > '9')
			return 0;
		number = number * 10 + (unsigned)(text[i] - '0');
	}
	return number;
}

/* The number of parts that a name like x-00001-of-00003.gguf tells; 1: it is the only file. */
static unsigned count_parts(const char *path)
{
	size_t length = strlen(path), tail = strlen("-00001-of-00003.gguf");
	const char *name = length < tail ? "" : path + length - tail;
	if (name[0] != '-' || strncmp(name + 6, "-of-", 4) != 0 || strcmp(name + 15, ".gguf") != 0)
		return 1;
	unsigned parts = five_digits(name + 10);
	return five_digits(name + 1) && parts && parts <= MOST_PARTS ? parts : 1;
}

/* The path of a part: its number takes the place of the first one's. False if it is too long. */
static bool name_part(char part[PATH_MAX], const char *path, unsigned number, unsigned parts)
{
	int length, tail = (int)strlen("00001-of-00003.gguf");
	if (parts == 1)
		length = snprintf(part, PATH_MAX, "%s", path);
	else
		length = snprintf(part, PATH_MAX, "%.*s%05u-of-%05u.gguf", (int)strlen(path) - tail, path,
		                  number, parts);
	return length < PATH_MAX;
}

/* Bytes of the cache for a token: keys and values of 16 bits, or a common vector of small rank. */
static uint64_t cache_bytes(const struct numbers *numbers)
{
	uint64_t key = numbers->key;
	uint64_t heads = numbers->kv_heads_of_all
	                     ? numbers->kv_heads_of_all
	                     : numbers->layers * (numbers->kv_heads ? numbers->kv_heads : numbers->heads);
	if (!key && numbers->heads)
		key = numbers->embedding / numbers->heads;
	if (numbers->rank)
		return numbers->layers * (numbers->rank + numbers->rope) * 2;
	return heads * (key + (numbers->value ? numbers->value : key)) * 2;
}

/* True if no product of them overflows. Real models have far smaller numbers. */
static bool are_plausible(const struct numbers *numbers)
{
	const uint64_t most = 1u << 20;
	return numbers->layers && numbers->layers <= 10000 && numbers->embedding <= most &&
	       numbers->heads <= most && numbers->kv_heads <= most && numbers->kv_heads_of_all <= most &&
	       numbers->key <= most && numbers->value <= most && numbers->rank <= most &&
	       numbers->rope <= most;
}

const char *gguf_read(const char *path, struct gguf_model *model)
{
	struct numbers numbers = {0};
	uint64_t sizes[KINDS] = {0};
	char part[PATH_MAX];
	unsigned parts = count_parts(path);
	for (unsigned i = 1; i <= parts; i++) {
		if (!name_part(part, path, i, parts))
			return "its path is too long";
		const char *problem = read_file(part, &numbers, sizes);
		if (problem)
			return problem;
	}
	if (!are_plausible(&numbers) || !sizes[LAYER])
		return damaged;
	*model = (struct gguf_model){.layers = numbers.layers,
	                             .layer_bytes = sizes[LAYER],
	                             .output_bytes = sizes[OUTPUT] ? sizes[OUTPUT] : sizes[EMBEDDING],
	                             .other_bytes = sizes[OTHER],
	                             .cache_bytes = cache_bytes(&numbers),
	                             .has_experts = numbers.experts != 0};
	return NULL;
}

const char *gguf_unreadable(const char *path, char part[PATH_MAX])
{
	unsigned parts = count_parts(path);
	for (unsigned i = 1; i <= parts; i++) {
		int error = 0,
		    fd = name_part(part, path, i, parts) ? cli_open(part, CLI_REGULAR, &error) : -1;
		if (fd >= 0)
			close(fd);
		else
			return error ? cli_open_text(error) : "its path is too long";
	}
	return NULL;
}
