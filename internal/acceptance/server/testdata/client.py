"""Calls the RESP front with Python's redis, as an application would: python3 client.py PORT."""
import json
import sys

import redis

client = redis.Redis(host="127.0.0.1", port=int(sys.argv[1]), decode_responses=True)

assert client.ping()

answer = json.loads(client.execute_command("RANK", "complex_dag", 1))
assert len(answer["candidates"]) == 50, answer

answer = json.loads(client.execute_command("RANK", "simple_viewer", 7, json.dumps({"request_id": "py"})))
assert answer["request_id"] == "py" and answer["candidates"][0]["id"] == 7, answer

assert "complex_dag" in client.execute_command("PLANS")

try:
    client.execute_command("RANK", "nowhere", 1)
    raise SystemExit("an unknown plan was ranked")
except redis.ResponseError as error:
    assert str(error).startswith("NOPLAN"), error

# A pipeline answers in order, and an error is one of its answers.
pipeline = client.pipeline(transaction=False)
for user in range(1, 101):
    pipeline.execute_command("RANK", "simple_viewer", user if user != 50 else "fifty")
answers = pipeline.execute(raise_on_error=False)
assert len(answers) == 100
for user, answer in enumerate(answers, 1):
    if user == 50:
        assert isinstance(answer, redis.ResponseError), answer
    else:
        assert json.loads(answer)["candidates"][0]["id"] == user, answer

many = client.execute_command("RANK.MANY", "simple_viewer", 1, 2, 3)
assert [json.loads(a)["candidates"][0]["id"] for a in many] == [1, 2, 3], many

assert client.client_id() > 0
client.client_setname("python")
assert client.client_getname() == "python"
client.close()
print("ok")
