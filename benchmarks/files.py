"""Reading UAI files of Ising grids: our reader, and pgmpy's on the one grid it is quick enough for,
in one process.
"""

import numpy as np
from clock import least_seconds
from pgmpy.readwrite import UAIReader

from thesis_cli.models import uai
from thesis_cli.studies.models.examples import ising

REPEATS = {4: 20, 10: 20, 100: 3}


def main():
    rng = np.random.default_rng(0)
    texts = {n: uai.write(ising(n, n, 1.0, rng)) for n in REPEATS}
    ours = {n: least_seconds(lambda t=text: uai.parse(t), REPEATS[n]) for n, text in texts.items()}
    for n, took in ours.items():
        print(f"{n} x {n}".ljust(10), f"thesis-cli {1e3 * took:9.2f} ms, {len(texts[n]) / took / 1e6:.1f} MB/s")
    took = least_seconds(lambda: UAIReader(string=texts[4]).get_model(), 1)
    print("4 x 4".ljust(10), f"pgmpy      {1e3 * took:9.2f} ms  ratio {took / ours[4]:.0f}")


if __name__ == "__main__":
    main()
