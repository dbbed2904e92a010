// oneDNN called directly: primitives with memory, behind a few C functions for peer_onednn.py. The loop of calls is
// here, so that no interpreter stands between two of them.
#include <chrono>
#include <cstdint>
#include <cstring>
#include <exception>
#include <memory>
#include <oneapi/dnnl/dnnl.hpp>
#include <string>
#include <unordered_map>
#include <vector>

using namespace dnnl;
using Dims = memory::dims;
using Tag = memory::format_tag;

namespace {

// A primitive with the memory that it works on, ready to be called.
struct Step {
    primitive compute;
    std::unordered_map<int, memory> arguments;
};

struct Problem {
    engine cpu{engine::kind::cpu, 0};
    stream queue{cpu};
    std::vector<Step> steps;
    memory result;

    memory filled(const memory::desc &wanted, const memory::desc &plain, const float *data) {
        memory given(plain, cpu, const_cast<float *>(data));
        memory own(wanted, cpu);
        reorder(given, own).execute(queue, given, own);
        queue.wait();
        return own;
    }

    void run() {
        for (auto &step : steps) step.compute.execute(queue, step.arguments);
        queue.wait();
    }
};

std::string failure;

memory::desc described(const Dims &dims, Tag tag) { return {dims, memory::data_type::f32, tag}; }

Tag plain_tag(size_t rank) {
    const Tag tags[] = {Tag::a, Tag::ab, Tag::abc, Tag::abcd, Tag::abcde, Tag::abcdef};
    return tags[rank - 1];
}

// Channels last, of an image of this rank.
Tag last_tag(size_t rank) {
    const Tag tags[] = {Tag::acb, Tag::acdb, Tag::acdeb};
    return tags[rank - 3];
}

primitive_attr with_relu(bool relu) {
    primitive_attr attributes;
    if (relu) {
        post_ops after;
        after.append_eltwise(algorithm::eltwise_relu, 0, 0);
        attributes.set_post_ops(after);
    }
    return attributes;
}

Dims dims_of(const int64_t *values, int rank) { return Dims(values, values + rank); }

template <typename Description>
void add_convolution(Problem &problem, const Description &description, const memory::desc &src_plain,
                     const float *src, const memory::desc &weights_plain, const float *weights,
                     const memory::desc &bias_desc, const float *bias, primitive compute) {
    auto source = problem.filled(description.src_desc(), src_plain, src);
    auto kernel = problem.filled(description.weights_desc(), weights_plain, weights);
    problem.result = memory(description.dst_desc(), problem.cpu);
    std::unordered_map<int, memory> arguments{
        {DNNL_ARG_SRC, source}, {DNNL_ARG_WEIGHTS, kernel}, {DNNL_ARG_DST, problem.result}};
    if (bias) arguments.insert({DNNL_ARG_BIAS, problem.filled(bias_desc, bias_desc, bias)});
    problem.steps.push_back({compute, arguments});
}

template <typename Body>
void *guarded(Body body) {
    try {
        auto problem = std::make_unique<Problem>();
        body(*problem);
        problem->run();
        return problem.release();
    } catch (const std::exception &error) {
        failure = error.what();
        return nullptr;
    }
}

}  // namespace

extern "C" {

const char *bench_failure() { return failure.c_str(); }

void bench_version(int *numbers) {
    const auto *version = dnnl_version();
    numbers[0] = version->major, numbers[1] = version->minor, numbers[2] = version->patch;
}

// A convolution, or its transpose, whose weights are prepared ahead. Shapes are (N,C,...), weights (G,)O,I,...
// with groups; `channels_last` is about the images.
void *bench_convolution(int rank, int transposed, int channels_last, int relu, const int64_t *src_dims,
                        int weights_rank, const int64_t *weights_dims, const int64_t *dst_dims, int64_t stride,
                        int64_t padding, int64_t dilation, const float *src, const float *weights,
                        const float *bias) {
    return guarded([&](Problem &problem) {
        const auto tag = channels_last ? last_tag(rank) : plain_tag(rank);
        const auto source = dims_of(src_dims, rank), kernel = dims_of(weights_dims, weights_rank),
                   result = dims_of(dst_dims, rank);
        const Dims strides(rank - 2, stride), pads(rank - 2, padding), dilations(rank - 2, dilation - 1);
        const auto src_desc = described(source, tag), dst_desc = described(result, tag);
        const auto weights_any = described(kernel, Tag::any);
        const auto bias_desc = bias ? described({result[1]}, Tag::a) : memory::desc();
        const auto src_plain = described(source, plain_tag(rank));
        const auto weights_plain = described(kernel, plain_tag(weights_rank));
        if (transposed) {
            deconvolution_forward::primitive_desc description(
                problem.cpu, prop_kind::forward_inference, algorithm::deconvolution_direct, src_desc, weights_any,
                bias_desc, dst_desc, strides, dilations, pads, pads, with_relu(relu));
            add_convolution(problem, description, src_plain, src, weights_plain, weights, bias_desc, bias,
                            deconvolution_forward(description));
        } else {
            convolution_forward::primitive_desc description(
                problem.cpu, prop_kind::forward_inference, algorithm::convolution_auto, src_desc, weights_any,
                bias_desc, dst_desc, strides, dilations, pads, pads, with_relu(relu));
            add_convolution(problem, description, src_plain, src, weights_plain, weights, bias_desc, bias,
                            convolution_forward(description));
        }
    });
}

// A product of row-major matrices, either of which may be stored transposed; neither is prepared ahead.
void *bench_matmul(int64_t batch, int64_t m, int64_t n, int64_t k, int ta, int tb, const float *a, const float *b) {
    return guarded([&](Problem &problem) {
        const Dims left{batch, m, k}, right{batch, k, n}, result{batch, m, n};
        const auto a_desc = described(left, ta ? Tag::acb : Tag::abc), b_desc = described(right, tb ? Tag::acb : Tag::abc);
        matmul::primitive_desc description(problem.cpu, a_desc, b_desc, described(result, Tag::abc));
        problem.result = memory(description.dst_desc(), problem.cpu);
        problem.steps.push_back({matmul(description),
                                 {{DNNL_ARG_SRC, problem.filled(a_desc, a_desc, a)},
                                  {DNNL_ARG_WEIGHTS, problem.filled(b_desc, b_desc, b)},
                                  {DNNL_ARG_DST, problem.result}}});
    });
}

// Layers of product, bias and rectified linear unit; weights are (O,I) and prepared ahead.
void *bench_mlp(int layers, int64_t batch, const int64_t *widths, const float *x, const float *const *weights,
                const float *const *biases) {
    return guarded([&](Problem &problem) {
        const auto x_desc = described({batch, widths[0]}, Tag::ab);
        auto current = problem.filled(x_desc, x_desc, x);
        for (int i = 0; i < layers; ++i) {
            const auto bias_desc = described({1, widths[i + 1]}, Tag::ab);
            const Dims kernel{widths[i], widths[i + 1]};
            matmul::primitive_desc description(problem.cpu, current.get_desc(), described(kernel, Tag::any), bias_desc,
                                               described({batch, widths[i + 1]}, Tag::ab), with_relu(true));
            problem.result = memory(description.dst_desc(), problem.cpu);
            problem.steps.push_back(
                {matmul(description),
                 {{DNNL_ARG_SRC, current},
                  {DNNL_ARG_WEIGHTS, problem.filled(description.weights_desc(), described(kernel, Tag::ba), weights[i])},
                  {DNNL_ARG_BIAS, problem.filled(bias_desc, bias_desc, biases[i])},
                  {DNNL_ARG_DST, problem.result}}});
            current = problem.result;
        }
    });
}

// Nanoseconds of so many calls.
int64_t bench_run(void *handle, int64_t calls) {
    auto &problem = *static_cast<Problem *>(handle);
    const auto start = std::chrono::steady_clock::now();
    for (int64_t i = 0; i < calls; ++i) problem.run();
    return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now() - start).count();
}

// The result as a plain array.
void bench_output(void *handle, float *out) {
    auto &problem = *static_cast<Problem *>(handle);
    problem.run();
    const auto found = problem.result.get_desc();
    const auto dims = found.get_dims();
    memory plain(described(dims, plain_tag(dims.size())), problem.cpu, out);
    reorder(problem.result, plain).execute(problem.queue, problem.result, plain);
    problem.queue.wait();
}

void bench_free(void *handle) { delete static_cast<Problem *>(handle); }
}
