# SPDX-License-Identifier: Apache-2.0
# A training that torch.distributed would start, without torch: ranks find each other by MASTER_ADDR and MASTER_PORT, rank 0
# hears of all others what they were told, and prints the log of three steps. With "fail RANK" that rank raises an error.
import os
import socket
import sys
import time

rank, world = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
local, local_world = int(os.environ["LOCAL_RANK"]), int(os.environ["LOCAL_WORLD_SIZE"])
place = (os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"]))
mine = f"{rank}/{world} {local}/{local_world}"

if sys.argv[1:2] == ["fail"] and rank == int(sys.argv[2]):
    try:
        raise KeyError("inner")
    except KeyError as error:
        raise ValueError(f"the data of rank {rank} is not there") from error

if rank == 0:
    with socket.create_server(place) as server:
        server.settimeout(120)
        told = [mine]
        while len(told) < world:
            with server.accept()[0] as other:
                told.append(other.makefile().readline().strip())
    print("ranks:", ", ".join(sorted(told)))
    print("run: expected_steps=3")
    for step in range(1, 4):
        print(f"Epoch 1, Step {step}, Loss: 2.{step} sync: True time: 0.1 alloc_mem: 1000000 peak_mem: 2000000")
    print("state_digest: 0123456789abcdef0123456789abcdef")
else:
    for _ in range(1200):
        try:
            with socket.create_connection(place, 10) as server:
                server.sendall((mine + "\n").encode())
            break
        except ConnectionRefusedError:
            time.sleep(0.1)
    else:
        sys.exit("rank 0 is not there")
