// The subcommands of sherd, a file each. A callback that cannot do its work throws an Error.
#pragma once

namespace CLI {
class App;
}

namespace sherd {

void add_train(CLI::App& app);
void add_generate(CLI::App& app);
void add_checkpoint(CLI::App& app);
void add_tokenize(CLI::App& app);
void add_config(CLI::App& app);
void add_doctor(CLI::App& app);
void add_bench(CLI::App& app);
/// The part of bench that needs ranks.
void add_bench_comm(CLI::App& bench);
/// Those of the design that this version does not have: each says so.
void add_unavailable(CLI::App& app);

}  // namespace sherd
