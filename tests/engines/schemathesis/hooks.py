"""Mixes names of what exists into what schemathesis makes up."""

import schemathesis

KNOWN = {"prefix": "lakehouse", "namespace": "n", "table": "t", "view": "v", "function": "f", "warehouse": "lakehouse"}


@schemathesis.hook
def map_path_parameters(context, path_parameters):
    # By what was made up, so that the same seed makes the same requests.
    for name, known in KNOWN.items():
        if path_parameters and name in path_parameters:
            made_up = str(path_parameters[name])
            keeps_it = sum(made_up.encode()) % 4 == 0
            if not keeps_it or name == "prefix" and len(made_up) > 1:
                path_parameters[name] = known
    return path_parameters
