#pragma once

#include "experiments/commands/inspect.hpp"

namespace heed {

/// What a Transformer's loss on a text becomes without each of its heads (Michel et al. 2019), or with their outputs from another text of
/// as many tokens (activation patching: Vig et al. 2020): the change, by layer and head, as a table on `out` and, if options.picture names
/// a file, as a heat map. The loss is the mean cross entropy of each next token of the text. Throws ConfigError for a model that does not
/// predict the next token, for texts of other lengths, and for a text of one token.
void head_effects(Inspected const& subject, InspectOptions const& options, std::ostream& out);

}  // namespace heed
