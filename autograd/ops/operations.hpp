#pragma once

/// The differentiable operations, by family. None changes its inputs. All broadcast as NumPy does, need one dtype for all real inputs, and
/// throw Error naming the operation and the shapes. Negative axes count from the end.

#include "autograd/attention/attention.hpp"
#include "autograd/ops/elementwise.hpp"
#include "autograd/ops/index.hpp"
#include "autograd/ops/loss.hpp"
#include "autograd/ops/product.hpp"
#include "autograd/ops/reduce.hpp"
#include "autograd/ops/shape.hpp"
#include "autograd/ops/softmax.hpp"
