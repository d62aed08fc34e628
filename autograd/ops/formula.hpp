#pragma once

#include "autograd/elementwise.hpp"
#include "autograd/error.hpp"

// Includes for files of elementwise operations.
