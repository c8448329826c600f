/* The prediction of decode, against what was recorded of real programs on an H200 (PCIe Gen5 x16, a pinned copy 55.5 GB/s). */
#include "unit.h"
#include "doctor.h"

#define GIB ((uint64_t)1 << 30)
#define H200 55.5

static void within(double value, double recorded, double share)
{
	if (value < recorded * (1 - share) || value > recorded * (1 + share))
		fail_msg("%.2f is not within %.0f %% of %.2f", value, 100 * share, recorded);
}

/* A matrix product of batch 1 that reads 1 GiB of weights on the host took 20.9 ms, on the device 0.27. */
TEST(one_product)
{
	within(decode_over_link(GIB, H200), 20.9 - 0.27, 0.02);
}

/* llama.cpp, a model of 7.04 GiB: 2 GiB more of the weights on the host cost 42 ms a token. */
TEST(two_more_gib)
{
	within(decode_over_link(2 * GIB, H200), 42, 0.02);
}

/* The same: 209 tokens a second with enough memory; with 2.04 GiB on the host 20.2, and 22.1 in movable chunks. */
TEST(tokens_a_second)
{
	double token = 1000 / 209. + decode_over_link(2 * GIB + GIB / 25, H200);

	within(1000 / token, 20.2, 0.1);
	within(1000 / token, 22.1, 0.1);
}

/* Its own offload, 9 of 33 layers by 16 cores: 37.5 a second, so 1.92 GiB in at most 1000 / 37.5 - 24 / 33 of 1000 / 209 ms. */
TEST(own_offload)
{
	uint64_t bytes = GIB * 192 / 100;
	double took = 1000 / 37.5 - 1000 / 209. * 24 / 33, reached = (double)bytes / took / 1e6;

	within(decode_by_cpu(bytes, reached), took, 0.001);
	assert_true(took < decode_over_link(bytes, H200));
	assert_int_not_equal(decode_compare(H200, reached), DECODE_CPU_SLOWER);
}

/*
 * The same model, 32 layers and an output, with 6,145 MiB free, of which the context took 500. That
 * machine's 16 threads read its memory at 93 GB/s. Tokens a second: 263 with enough memory, 31.8 with
 * 24 layers on the device, 23.4 with libspill.
 */
TEST(own_offload_of_a_model)
{
	const struct decode_model model = {
	    .layers = 32, .layer_bytes = GIB * 690 / 100, .output_bytes = GIB * 14 / 100};
	struct decode_offload result;

	assert_true(decode_offload(&model, (6145 - 500ull) << 20, H200, 93, &result));
	assert_in_range(result.layers, 23, 25);
	assert_true(result.offload_is_faster);
	within(1000 / (1000 / 263. + result.link_ms), 23.4, 0.1);
	within(result.offload_ms, 1000 / 31.8 - 1000 / 263. * 24 / 33, 0.15);
	/* On a machine with slow memory the link is faster. */
	assert_true(decode_offload(&model, (6145 - 500ull) << 20, H200, 60, &result));
	assert_false(result.offload_is_faster);
	/* Not measured. */
	assert_true(decode_offload(&model, (6145 - 500ull) << 20, H200, 0, &result));
	assert_false(result.offload_is_faster);
}

TEST(a_model_that_fits)
{
	const struct decode_model model = {.layers = 4, .layer_bytes = 4 * GIB, .output_bytes = GIB};
	struct decode_offload result;

	assert_false(decode_offload(&model, 5 * GIB + DECODE_SCRATCH, 10, 100, &result));
	assert_int_equal(result.needs, 5 * GIB + DECODE_SCRATCH);
	assert_true(decode_offload(&model, 5 * GIB + DECODE_SCRATCH - 1, 10, 100, &result));
	assert_int_equal(result.layers, 4); /* only the output stays with the CPU */
	assert_true(decode_offload(&model, 0, 10, 100, &result));
	assert_int_equal(result.layers, 0);
}

TEST(verdicts)
{
	assert_int_equal(decode_compare(10, 9.2), DECODE_CPU_SLOWER);
	assert_int_equal(decode_compare(10, 9.4), DECODE_CPU_SIMILAR);
	assert_int_equal(decode_compare(10, 18.5), DECODE_CPU_SIMILAR);
	assert_int_equal(decode_compare(10, 18.7), DECODE_CPU_FASTER);
	/* PCIe 4.0 x16 beside two channels of DDR5; PCIe 5.0 x16 beside two of DDR4. */
	assert_int_equal(decode_compare(25, 60), DECODE_CPU_FASTER);
	assert_int_equal(decode_compare(55, 40), DECODE_CPU_SLOWER);
}
