# Python's own client sends requests on connections that stay open, bodies with a length and in chunks, a batch, and
# a request that is refused.
import http.client
import json
import sys

conn = http.client.HTTPConnection("127.0.0.1", int(sys.argv[1]), timeout=20)
for user in range(1, 6):
    conn.request("POST", "/v1/rank/simple_viewer", json.dumps({"user_id": user}))
    response = conn.getresponse()
    body = response.read()
    assert response.status == 200, body
    assert json.loads(body)["candidates"][0]["id"] == user, body
first = conn.sock
conn.request("POST", "/v1/rank/simple_viewer", iter([b'{"user_', b'id": 7}']), encode_chunked=True, headers={"Transfer-Encoding": "chunked"})
assert json.loads(conn.getresponse().read())["candidates"][0]["id"] == 7
conn.request("POST", "/v1/rank/nowhere", json.dumps({"user_id": 1}))
response = conn.getresponse()
assert response.status == 404, response.read()
response.read()
assert conn.sock is first, "one connection for all"
conn.request("POST", "/v1/batch", b"".join(b'{"user_id": %d, "plan": "simple_viewer"}\n' % user for user in range(1, 101)))
response = conn.getresponse()
assert [json.loads(line)["candidates"][0]["id"] for line in response] == list(range(1, 101))
print("ok")
