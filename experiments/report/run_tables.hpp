#pragma once

#include <string>

#include "experiments/report/material.hpp"

namespace heed {

/// The tables of a single run as HTML: the last value of each metric, and beside them what baselines and known losses reach.
std::string run_tables(Material const& material);

}  // namespace heed
