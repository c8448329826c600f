/* A model's header in the GGUF format: what is counted of it, and files that are cut, damaged or lie. */
#include "unit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "gguf.h"

#define DATA 4096 /* bytes of each tensor */

static char folder[] = "/tmp/spill-gguf-XXXXXX", path[64];
static unsigned char bytes[1 << 18];
static size_t length;

static int make_folder(void **state)
{
	assert_non_null(mkdtemp(folder));
	snprintf(path, sizeof(path), "%s/model.gguf", folder);
	return 0;
}

static int remove_folder(void **state)
{
	char command[64];

	snprintf(command, sizeof(command), "rm -r %s", folder);
	return system(command);
}

/* -- a model by hand, little-endian --------------------------------------------------------------- */

static void add_number(uint64_t value, unsigned width)
{
	memcpy(bytes + length, &value, width);
	length += width;
}

static void add_string(const char *text)
{
	add_number(strlen(text), 8);
	memcpy(bytes + length, text, strlen(text));
	length += strlen(text);
}

static void add_key(const char *key, unsigned value)
{
	add_string(key);
	add_number(4, 4);
	add_number(value, 4);
}

static void add_tensor(const char *name, uint64_t offset)
{
	add_string(name);
	add_number(1, 4); /* dimensions */
	add_number(1024, 8);
	add_number(0, 4); /* type */
	add_number(offset, 8);
}

static void begin(unsigned version, uint64_t tensors, uint64_t keys)
{
	length = 0;
	memcpy(bytes, "GGUF", 4);
	length = 4;
	add_number(version, 4);
	add_number(tensors, 8);
	add_number(keys, 8);
}

/* Of the length so far, and then holes for so many bytes of data. */
static void write_file(uint64_t data)
{
	FILE *file = fopen(path, "w");

	assert_non_null(file);
	assert_int_equal(fwrite(bytes, 1, length, file), length);
	assert_int_equal(fflush(file), 0);
	assert_int_equal(ftruncate(fileno(file), (off_t)(length + data)), 0);
	fclose(file);
}

/* The data begins at the next multiple of the alignment. */
static void align(unsigned to)
{
	while (length % to)
		bytes[length++] = 0;
}

/* Two layers, an embedding, an output and a norm; tensors out of order. */
static void make_model(void)
{
	begin(3, 5, 7);
	add_string("general.architecture");
	add_number(8, 4);
	add_string("llama");
	add_key("llama.block_count", 2);
	add_key("llama.embedding_length", 64);
	add_key("llama.attention.head_count", 8);
	add_key("llama.attention.head_count_kv", 4);
	add_string("tokenizer.ggml.tokens"); /* strings, which are read over */
	add_number(9, 4);
	add_number(8, 4);
	add_number(2, 8);
	add_string("a");
	add_string("of some words");
	add_string("tokenizer.ggml.scores"); /* small values */
	add_number(9, 4);
	add_number(6, 4);
	add_number(3, 8);
	add_number(0, 8);
	add_number(0, 4);
	add_tensor("output.weight", 4 * DATA);
	add_tensor("blk.1.ffn_up.weight", 2 * DATA);
	add_tensor("blk.0.ffn_up.weight", DATA);
	add_tensor("token_embd.weight", 0);
	add_tensor("output_norm.weight", 3 * DATA);
}

TEST(what_a_model_needs)
{
	struct gguf_model model;

	make_model();
	align(32);
	write_file(6 * DATA);
	assert_null(gguf_read(path, &model));
	assert_int_equal(model.layers, 2);
	assert_int_equal(model.layer_bytes, 2 * DATA);
	assert_int_equal(model.output_bytes, 2 * DATA); /* up to the end of the file */
	assert_int_equal(model.other_bytes, DATA);
	assert_int_equal(model.cache_bytes, 2 * 4 * (8 + 8) * 2);
	assert_false(model.has_experts);
	/* A file without the end of its weights. */
	write_file(2 * DATA + 1);
	assert_null(gguf_read(path, &model));
	assert_int_equal(model.layer_bytes, DATA + 1);
	assert_int_equal(model.other_bytes, 0);
}

/* Wherever it is cut before its weights, it is no model. Nothing behind the end is read. */
TEST(a_header_that_is_cut)
{
	struct gguf_model model;

	make_model();
	align(32);
	for (size_t whole = length, kept = 0; kept < whole; kept++) {
		length = kept;
		write_file(0);
		assert_string_equal(gguf_read(path, &model),
		                    kept < 24 ? "it is no GGUF file" : "it is damaged, or of another kind");
	}
}

TEST(versions_and_counts)
{
	struct gguf_model model;

	for (unsigned version = 1; version <= 4; version++) {
		make_model();
		memcpy(bytes + 4, &version, 4);
		align(32);
		write_file(6 * DATA);
		assert_int_equal(gguf_read(path, &model) == NULL, version == 2 || version == 3);
	}
	make_model();
	bytes[0] = 'g';
	write_file(6 * DATA);
	assert_string_equal(gguf_read(path, &model), "it is no GGUF file");
	/* No layers, or none with weights. */
	begin(3, 1, 1);
	add_key("llama.block_count", 1);
	add_tensor("token_embd.weight", 0);
	align(32);
	write_file(DATA);
	assert_non_null(gguf_read(path, &model));
	begin(3, 1, 1);
	add_key("llama.block_count", 0);
	add_tensor("blk.0.ffn_up.weight", 0);
	align(32);
	write_file(DATA);
	assert_non_null(gguf_read(path, &model));
}

static uint64_t cache_of(unsigned keys, const char *const *key, const unsigned *value)
{
	struct gguf_model model;

	begin(2, 1, keys);
	for (unsigned i = 0; i < keys; i++)
		add_key(key[i], value[i]);
	add_tensor("blk.0.ffn_up.weight", 0);
	align(32);
	write_file(DATA);
	assert_null(gguf_read(path, &model));
	assert_int_equal(model.layer_bytes, DATA);
	return model.cache_bytes;
}

/* Keys and values of 16 bits of each layer, or one vector that both are made of. */
TEST(the_cache_of_a_token)
{
	static const char *const keys[] = {
	    "x.block_count",           "x.attention.head_count",   "x.embedding_length",
	    "x.attention.key_length",  "x.attention.value_length", "x.rope.dimension_count",
	    "x.attention.kv_lora_rank"};
	static const unsigned values[] = {3, 4, 40, 5, 6, 7, 9};

	assert_int_equal(cache_of(2, keys, values), 0);
	assert_int_equal(cache_of(3, keys, values), 3 * 4 * (10 + 10) * 2);
	assert_int_equal(cache_of(4, keys, values), 3 * 4 * (5 + 5) * 2);
	assert_int_equal(cache_of(5, keys, values), 3 * 4 * (5 + 6) * 2);
	assert_int_equal(cache_of(6, keys, values), 3 * 4 * (5 + 6) * 2);
	assert_int_equal(cache_of(7, keys, values), 3 * (9 + 7) * 2);
}

/* Layers with different numbers of heads have them in an array, of which the sum counts. */
TEST(heads_of_each_layer)
{
	struct gguf_model model;

	begin(3, 1, 5);
	add_key("x.block_count", 3);
	add_key("x.attention.head_count", 8);
	add_key("x.attention.key_length", 10);
	add_key("x.expert_count", 2);
	add_string("x.attention.head_count_kv");
	add_number(9, 4);
	add_number(4, 4);
	add_number(3, 8);
	add_number(1, 4);
	add_number(0, 4);
	add_number(4, 4);
	add_tensor("blk.0.ffn_up.weight", 0);
	align(32);
	write_file(DATA);
	assert_null(gguf_read(path, &model));
	assert_int_equal(model.cache_bytes, 5 * (10 + 10) * 2);
	assert_true(model.has_experts);
	/* Without an output of its own the embedding's weights serve. */
	assert_int_equal(model.output_bytes, 0);
}

/* The reader has a buffer of 64 KiB. Words longer than it keeps of a name, and a key behind all of them. */
TEST(a_large_vocabulary)
{
	struct gguf_model model;
	char word[400];

	for (unsigned of = 250; of < 260; of++) {
		begin(3, 1, 3);
		add_key("x.block_count", 1);
		add_string("tokenizer.ggml.tokens");
		add_number(9, 4);
		add_number(8, 4);
		add_number(600, 8);
		memset(word, 'w', of);
		word[of] = '\0';
		for (unsigned i = 0; i < 600; i++)
			add_string(word);
		add_key("x.expert_count", 3);
		add_tensor("blk.0.ffn_up.weight", 0);
		align(32);
		write_file(DATA);
		assert_null(gguf_read(path, &model));
		assert_true(model.has_experts);
		assert_int_equal(model.layer_bytes, DATA);
	}
}

static void begin_heads(uint64_t count)
{
	add_string("x.attention.head_count_kv");
	add_number(9, 4);
	add_number(0, 4); /* of a byte each */
	add_number(count, 8);
}

/* write_file, with a hole before the bytes from `begin` on. */
static void write_with_hole(unsigned begin, uint64_t hole)
{
	FILE *file = fopen(path, "w");

	assert_non_null(file);
	assert_int_equal(fwrite(bytes, 1, begin, file), begin);
	assert_int_equal(fseek(file, (long)hole, SEEK_CUR), 0);
	assert_int_equal(fwrite(bytes + begin, 1, length - begin, file), length - begin);
	assert_int_equal(fflush(file), 0);
	assert_int_equal(ftruncate(fileno(file), (off_t)(length + hole + DATA + 32)), 0);
	fclose(file);
}

/* A file that only has long arrays is no model: 2^24 elements of all together are read, and none more. */
TEST(the_elements_of_all_arrays)
{
	struct gguf_model model;

	for (unsigned over = 0; over < 2; over++) {
		begin(3, 1, 3);
		add_key("x.block_count", 1);
		begin_heads(1);
		add_number(4, 1);
		begin_heads((1u << 24) - 1 + over);
		unsigned first = (unsigned)length;
		add_tensor("blk.0.ffn_up.weight", 0);
		write_with_hole(first, (1u << 24) - 1 + over);
		assert_int_equal(gguf_read(path, &model) != NULL, over);
	}
}

/* No product of larger numbers may overflow. */
TEST(numbers_of_no_model)
{
	static const char *const keys[] = {"x.embedding_length",        "x.attention.head_count",
	                                   "x.attention.head_count_kv", "x.attention.key_length",
	                                   "x.attention.value_length",  "x.attention.kv_lora_rank",
	                                   "x.rope.dimension_count",    "x.block_count"};

	for (unsigned i = 0; i < 16; i++) {
		const unsigned key = i / 2, most = key == 7 ? 10000 : 1 << 20, over = i % 2;
		struct gguf_model model;

		begin(3, 1, 2);
		add_key("x.block_count", 1);
		add_key(keys[key], most + over);
		add_tensor("blk.0.ffn_up.weight", 0);
		align(32);
		write_file(DATA);
		assert_int_equal(gguf_read(path, &model) != NULL, over);
	}
}

/* One of two files, under this name: both tell a tensor of a layer, the first has the numbers. */
static void write_part(const char *name, bool has_keys)
{
	snprintf(path, sizeof(path), "%s/%s", folder, name);
	begin(3, 1, has_keys ? 1 : 0);
	if (has_keys)
		add_key("x.block_count", 2);
	add_tensor(has_keys ? "blk.0.ffn_up.weight" : "blk.1.ffn_up.weight", 0);
	align(32);
	write_file(DATA);
}

/* All parts are read, whichever is named. Another name is that of a whole model. */
TEST(a_model_in_parts)
{
	static const char *const others[] = {
	    "m-0000a-of-00002.gguf", "m-00001-of-0000z.gguf", "m-00001-of-00000.gguf",
	    "m-00000-of-00002.gguf", "m-00001-or-00002.gguf", "m-00001-of-00002.ggux",
	    "m_00001-of-00002.gguf", "m-00001-of-01000.gguf", "-of-00002.gguf"};
	struct gguf_model model;

	write_part("m-00001-of-00012.gguf", true);
	for (unsigned i = 2; i <= 12; i++) {
		char name[32];

		assert_non_null(gguf_read(path, &model)); /* one is missing yet */
		snprintf(name, sizeof(name), "m-%05u-of-00012.gguf", i);
		write_part(name, false);
	}
	assert_null(gguf_read(path, &model));
	assert_int_equal(model.layer_bytes, 12 * DATA);
	snprintf(path, sizeof(path), "%s/m-00009-of-00012.gguf", folder);
	assert_null(gguf_read(path, &model));
	assert_int_equal(model.layer_bytes, 12 * DATA);
	for (unsigned i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
		write_part(others[i], true);
		assert_null(gguf_read(path, &model));
		assert_int_equal(model.layer_bytes, DATA);
	}
}

int main(void)
{
	return run_unit_tests(make_folder, remove_folder);
}
