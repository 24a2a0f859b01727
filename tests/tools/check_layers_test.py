#!/usr/bin/env python3
"""check_layers finds each kind of fault, and nothing where there is none."""
import importlib.machinery
import importlib.util
import os
import sys
import tempfile
import unittest

sys.dont_write_bytecode = True
PATH = os.path.join("tools", "check_layers")  # from the runfiles of the test
LOADER = importlib.machinery.SourceFileLoader("check_layers", PATH)
check_layers = importlib.util.module_from_spec(importlib.util.spec_from_loader("check_layers", LOADER))
LOADER.exec_module(check_layers)

GOOD = {
    "base/error.h": "#include <string>\n",
    "tensor/tensor.h": '#include "base/error.h"\n#include <Eigen/Core>\n',
    "tensor/gemm.cc": '#include <oneapi/dnnl/dnnl.hpp>\n#include "tensor/tensor.h"\n',
    "dist/comm/communicator.h": '#include "tensor/tensor.h"\n',
    "dist/gather.h": '#include "dist/comm/communicator.h"\n#include "nn/module.h"\n',
    "nn/module.h": "",
    "third_party/catch2/test.h": "",
    "tests/nn/module_test.cc": '#include "nn/module.h"\n#include "third_party/catch2/test.h"\n',
}


class CheckLayersTest(unittest.TestCase):
    def faults(self, **changed):
        files = dict(GOOD)
        files.update({name.replace("__", "/").replace("_dot_", "."): text
                      for name, text in changed.items()})
        with tempfile.TemporaryDirectory() as root:
            for name, text in files.items():
                path = os.path.join(root, name)
                os.makedirs(os.path.dirname(path), exist_ok=True)
                with open(path, "w", encoding="utf-8") as out:
                    out.write(text)
            return check_layers.check(root)

    def expect(self, why, **changed):
        _, faults = self.faults(**changed)
        self.assertEqual(len(faults), 1, faults)
        self.assertIn(why, faults[0])

    def test_good_tree_has_no_faults(self):
        num_files, faults = self.faults()
        self.assertEqual(faults, [])
        self.assertEqual(num_files, len(GOOD) - 1)  # third_party is not searched

    def test_folder_to_the_right(self):
        self.expect("nn is to the right of tensor", tensor__bad_dot_h='#include "nn/module.h"\n')

    def test_line_is_named(self):
        _, faults = self.faults(base__bad_dot_cc='// first\n  #  include "tensor/tensor.h"\n')
        self.assertEqual(faults, ["base/bad.cc:2: tensor/tensor.h: tensor is to the right of base"])

    def test_comm_sees_only_base_and_tensor(self):
        self.expect("dist/comm sees only", dist__comm__bad_dot_h='#include "nn/module.h"\n')
        self.expect("dist/comm sees only", dist__comm__bad_dot_h='#include "dist/gather.h"\n')

    def test_spelled_from_the_root(self):
        self.expect("no such file", nn__bad_dot_h='#include "module.h"\n')

    def test_own_headers_are_quoted(self):
        self.expect("quoted", nn__bad_dot_h="#include <nn/module.h>\n")

    def test_library_headers_only_in_sources(self):
        for library in ("oneapi/dnnl/dnnl.hpp", "dnnl.h", "toml++/toml.h", "CLI/CLI.hpp",
                        "nlohmann/json.hpp", "mpi.h", "nccl.h", "cudnn.h", "cublasLt.h"):
            self.expect("library headers", nn__bad_dot_h="#include <%s>\n" % library)
            self.assertEqual(self.faults(nn__good_dot_cc="#include <%s>\n" % library)[1], [])

    def test_nobody_includes_tests(self):
        self.expect("stands aside", nn__bad_dot_h='#include "tests/near.h"\n', tests__near_dot_h="")
        self.expect("catch2 is for tests", nn__bad_dot_h='#include "third_party/catch2/test.h"\n')


if __name__ == "__main__":
    unittest.main()
