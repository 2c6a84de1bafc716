package registry

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/alicebob/miniredis/v2"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rankd/rankd/internal/testing/testworld"
	"github.com/rankd/rankd/registry"
	rediscluster "github.com/rankd/rankd/resp/cluster"
)

// runCommand runs "rankd registry" and returns what it prints.
func runCommand(t *testing.T, args ...string) (string, error) {
	var out bytes.Buffer
	cmd := (&Program{Stdout: &out}).Command(t.Context())
	cmd.SilenceUsage, cmd.SilenceErrors = true, true
	cmd.SetArgs(args)
	err := cmd.ExecuteContext(context.Background())
	return out.String(), err
}

func TestInfer(t *testing.T) {
	redis := miniredis.RunT(t)
	redis.HSet("product:1", "name", "Rain coat", "price", "89.5", "stock", "3", "colours", "yellow,blue", "id", "1", "zip", "007", "new", "true", "sale", "1")
	redis.HSet("product:2", "name", "Straw, hat", "price", "24", "stock", "12", "colours", "natural", "c-ts", "5", "new", "false", "sale", "0")
	redis.HSet("product:3", "name", "a\nb", "price", "cheap", "stock", "-1", "tags", `["a","b,c"]`, "product_id", "x")
	redis.HSet("product:4", "price", "1e3", "c_ts", "x")
	for i := range fieldsMax + 1 {
		redis.HSet("product:index", fmt.Sprint(i), "1")
	}
	_, _ = redis.Lpush("product:list", "1")
	require.NoError(t, redis.Set("product:text", "{}"))
	redis.HSet("user:1", "name", "x")
	out, err := runCommand(t, "infer", "product:*", "--redis", redis.Addr())
	require.NoError(t, err)
	assert.Equal(t, `# A guess from 4 hashes with keys like "product:*". Check it, and run rankd registry lock.
# Not read: keys of type hash with more than 1000 fields: 1, such as "product:index".
# Not read: keys of type list: 1, such as "product:list".
# Not read: keys of type string: 1, such as "product:text".
[product]
c_ts = {type = "int", field = "c-ts"} # null in 3 of 4; "5"
product_c_ts = {type = "string", field = "c_ts"} # null in 3 of 4; "x"
colours = "string_set" # null in 2 of 4; commas without blanks: string?; "natural", "yellow,blue"
product_id = {type = "int", field = "id"} # null in 3 of 4; "1"
name = "string" # null in 1 of 4; "Rain coat", "Straw, hat", "a\nb"
new = "bool" # null in 2 of 4; "false", "true"
price = "float" # null in 0 of 4; 1 of 4 will be null, as "cheap" is not a float; "1e3", "24", "89.5"
product_product_id = {type = "string", field = "product_id"} # null in 3 of 4; "x"
sale = "int" # null in 2 of 4; only 0 and 1: bool?; "0", "1"
stock = "int" # null in 1 of 4; "-1", "12", "3"
tags = "string_set" # null in 3 of 4; "[\"a\",\"b,c\"]"
zip = "string" # null in 3 of 4; a number begins with 0, so this may be a code; "007"
`, out)

	out, err = runCommand(t, "infer", "product:?", "--redis", redis.Addr(), "--samples", "2")
	require.NoError(t, err)
	assert.Contains(t, out, "A guess from 2 hashes")

	// An existing file stays, unless the command line says otherwise.
	file := filepath.Join(t.TempDir(), "keys.toml")
	out, err = runCommand(t, "infer", "user:*", "--redis", redis.Addr(), "--output", file)
	require.NoError(t, err)
	assert.Empty(t, out)
	_, err = runCommand(t, "infer", "product:*", "--redis", redis.Addr(), "--output", file)
	assert.ErrorContains(t, err, "exists; --force replaces it")
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	assert.Contains(t, string(text), "[user]\nname = \"string\" # null in 0 of 1; \"x\"\n")
	_, err = runCommand(t, "infer", "product:*", "--redis", redis.Addr(), "--output", file, "--force")
	require.NoError(t, err)
	text, err = os.ReadFile(file)
	require.NoError(t, err)
	assert.Contains(t, string(text), "[product]\n")
}

// Vectors are told from text and sets, samples differ, and what no table can name is counted.
func TestInferLooksAtWhatValuesAre(t *testing.T) {
	redis := miniredis.RunT(t)
	packed := func(x ...float32) (text string) {
		for _, x := range x {
			text += string(binary.LittleEndian.AppendUint32(nil, math.Float32bits(x)))
		}
		return text
	}
	for i := range 4 {
		key := fmt.Sprintf("p:%d", i)
		redis.HSet(key, "packed", packed(float32(i), -1.5, 1e9), "list", fmt.Sprintf("0.5, %d,1e3", i), "bracketed", fmt.Sprintf("[%d.5,2]", i), "ints", fmt.Sprintf("1,2,%d", i),
			"uneven", strings.Repeat("0.5,", i)+"1", "currency", "EUR", "blob", fmt.Sprintf("\xff%d", i), "nan", packed(float32(math.NaN()), 1), "bad\x00name", "1", "\xff", "1", strings.Repeat("x", 257), "1")
	}
	redis.HSet("p:4", "currency", "USD")
	out, err := runCommand(t, "infer", "p:*", "--redis", redis.Addr())
	require.NoError(t, err)
	for _, want := range []string{
		`packed = "vector(3)" # null in 1 of 5; 12 bytes` + "\n", `list = "vector(3)" # null in 1 of 5; "0.5, 0,1e3", `, `bracketed = "vector(2)" # `, `ints = "string_set" # `,
		`currency = "string" # null in 0 of 5; "EUR", "USD"` + "\n", `blob = "string" # null in 1 of 5; not all values are text; 2 bytes` + "\n", `nan = "string" # null in 1 of 5; not all values are text; 8 bytes` + "\n",
		`# Left out: 3 fields with names that no table takes, such as "bad\x00name".`,
	} {
		assert.Contains(t, out, want)
	}
	assert.NotContains(t, out, `uneven = "vector`)
	_, added, err := registry.Lock(fstest.MapFS{"keys.toml": {Data: []byte(out)}})
	require.NoError(t, err)
	assert.Len(t, added, 8)
}

// The master that sentinels know, and a Redis Cluster, are asked as one server is.
func TestInferAsksAnyRedis(t *testing.T) {
	cluster := testworld.StartRedisCluster(t, 2)
	cluster.Do(t, cluster.Owner(rediscluster.Slot([]byte("product:1"))), "HSET", "product:1", "price", "89.5")
	cluster.Do(t, cluster.Owner(rediscluster.Slot([]byte("product:2"))), "HSET", "product:2", "name", "Straw hat")
	require.NotEqual(t, cluster.Owner(rediscluster.Slot([]byte("product:1"))), cluster.Owner(rediscluster.Slot([]byte("product:2"))))
	followed := testworld.StartRedisSentinels(t, 1, 1)
	followed.Do(t, 0, "HSET", "product:1", "price", "89.5", "name", "Rain coat")
	for _, redis := range []string{cluster.Addr(), followed.Addr()} {
		out, err := runCommand(t, "infer", "product:*", "--redis", redis)
		require.NoError(t, err)
		assert.Contains(t, out, "price = ")
		assert.Contains(t, out, "name = ")
	}
}

func TestInferErrors(t *testing.T) {
	redis := miniredis.RunT(t)
	_, _ = redis.Lpush("product:list", "1")
	addr := redis.Addr()
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"x:*", "--redis", addr}, `no hash has a key like "x:*"`},
		{[]string{"*", "--redis", addr}, `no hash has a key like "*"; keys of type list: 1, such as "product:list"`},
		{[]string{"x:*"}, "rankd registry infer needs a Redis: --redis host:port, or redis in rankd.toml"},
		{[]string{"a", "b"}, "rankd registry infer takes one pattern, not 2; quote it, as in 'product:*'"},
		{[]string{"x", "--redis", addr, "--samples", "0"}, "--samples is a number from 1 to 100000, not 0"},
		{[]string{"x", "--redis", "http://h"}, "--redis: "},
	} {
		out, err := runCommand(t, append([]string{"infer"}, c.args...)...)
		assert.ErrorContains(t, err, c.want)
		assert.Empty(t, out)
	}
	redis.SetError("LOADING")
	_, err := runCommand(t, "infer", "x", "--redis", addr)
	assert.ErrorContains(t, err, "LOADING")
}

// FuzzTable: a table that infer writes can be locked, whatever the hashes contain. A field that tables refuse is left out.
func FuzzTable(f *testing.F) {
	f.Add("price", "89.5", "c-ts", "x\ny", "product")
	f.Add("id", "007", "1", "[\"a\"]", "id")
	f.Add("a b", "", "a_b", "\xff", "")
	f.Add("price", "1", "x\x00", "\x00\x00\x80\x3f\xff\xff\x00\x00", "key")
	f.Add("price", "1", "b", "2", "kEy")
	f.Add("", "0.5,1", "\xff", "[1.5, 2]", "key")
	f.Add("\u2028", "0", "\"", "\x7f", "x y")
	f.Fuzz(func(t *testing.T, field, value, field2, value2, entity string) {
		var s sample
		s.hashes = 2
		s.add(field, value)
		s.add(field2, value2)
		var out bytes.Buffer
		err := s.writeTable(&out, entityName(entity))
		if len(s.fields) == 0 {
			require.ErrorContains(t, err, "no field of the hashes has a name that a table takes")
			return
		}
		require.NoError(t, err)
		_, added, err := registry.Lock(fstest.MapFS{"keys.toml": {Data: out.Bytes()}})
		require.NoError(t, err, out.String())
		require.Len(t, added, len(s.fields))
	})
}
