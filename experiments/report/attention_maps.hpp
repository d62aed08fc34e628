#pragma once

#include <cstddef>
#include <string>

#include "experiments/report/material.hpp"

namespace heed {

/// Attention maps for the page's viewer, as JSON, from attention/step-*.npz of one trial an arm (its first seed that has some):
///   {"texts": [[token, …], …], "pictures": [{"channels", "height", "width", "pixels"}, …],
///    "arms": [{"name", "seed", "steps": [{"step", "examples": [{PART: {"text": index into texts, "length": of the whole},
///                                                               PART: {"picture": index into pictures}}, …],
///                                         "layers": [{"name", "of": [PART, PART], "across", "heads", "queries", "keys",
///                                                     "places": [n, m], "peaks", "weights"}, …]}, …]}, …]}
/// `of`: the parts of a layer's queries and keys; `queries` and `keys`: how many of the n and m are included. `weights`: bytes in base64,
/// [example, head, query, key], each (byte / 255)² of its map's peak; `peaks` [example, head]. `pixels`: bytes, channel by channel;
/// `across`: picture fields (keys) per row. At most `budget` bytes: steps and then examples are thinned out and texts cut until it fits.
/// Empty if there are no maps; a damaged file becomes a warning of the material.
std::string attention_maps(Material& material, std::size_t budget);

std::string base64(std::string_view bytes);

}  // namespace heed
