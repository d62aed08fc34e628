#pragma once

/// The differentiable operations, by family. All leave their inputs alone, broadcast as NumPy does where two shapes meet, want one dtype
/// for all real inputs, and throw Error naming the operation and the shapes. Negative axes count from the end.

#include "autograd/operations/attention.hpp"
#include "autograd/operations/elementwise.hpp"
#include "autograd/operations/index.hpp"
#include "autograd/operations/loss.hpp"
#include "autograd/operations/product.hpp"
#include "autograd/operations/reduce.hpp"
#include "autograd/operations/shape.hpp"
#include "autograd/operations/softmax.hpp"
