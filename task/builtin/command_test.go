package builtin_test

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rankd/rankd/internal/testing/registrytest"
	"github.com/rankd/rankd/plan"
	"github.com/rankd/rankd/rankdtest"
	"github.com/rankd/rankd/registry"
	"github.com/rankd/rankd/resp"
	"github.com/rankd/rankd/resp/cluster"
	"github.com/rankd/rankd/rowset"
	"github.com/rankd/rankd/task"
	"github.com/rankd/rankd/task/builtin"
)

func commandTables() registrytest.Tables {
	tables := registrytest.Tables{Keys: registrytest.ID, Endpoints: registrytest.Redis}
	for i, k := range [][3]string{{"f1", "float", "f1"}, {"far", "float", "far"}, {"likes", "int", "likes"}, {"title", "string", "t"}} {
		tables.Keys += registrytest.Key(1001+i, k[0], k[1], registrytest.Nullable, registrytest.Writable, fmt.Sprintf("field = %q", k[2]))
	}
	for i, p := range [][2]string{{"lon", "float"}, {"near", "vector(2)"}, {"tab", "string"}, {"n", "int"}, {"seen", "int_list"}} {
		tables.Params += registrytest.Param(i+1, p[0], p[1], registrytest.Nullable, "context = true")
	}
	return tables
}

func words(text string) (all []any) {
	for _, word := range strings.Fields(text) {
		all = append(all, word)
	}
	return all
}

var shops = []any{"shop:1", "shop:7", "x"}

// commandCases has a node for each command of the table, and for each form of its reply.
var commandCases = []struct {
	command []any
	params  map[string]any // besides
	sent    string         // as Redis gets it; "": as the command stands
	reply   any
	ids     []int64 // of candidates
	scores  []any
	value   any // of lookup
}{
	{command: words("GEOSEARCH shops FROMLONLAT {lon} -0.5 BYRADIUS 5 km ASC COUNT 3 WITHDIST"), sent: "GEOSEARCH shops FROMLONLAT 13.4 -0.5 BYRADIUS 5 km ASC COUNT 3 WITHDIST",
		params: map[string]any{"score": "f1", "id_prefix": "shop:"}, reply: []any{[]any{"shop:7", "0.25"}, []any{"shop:x", "1"}, []any{"shop:8", "nan"}}, ids: []int64{7}, scores: []any{0.25}},
	{command: []any{"geosearch", "shops", "FROMMEMBER", "{tab}", "byradius", 5, "km", "COUNT", 2.0}, sent: "GEOSEARCH shops FROMMEMBER new byradius 5 km COUNT 2",
		params: map[string]any{"id_prefix": "shop:"}, reply: shops, ids: []int64{1, 7}},
	{command: words("SINTER tags:a tags:{user}"), sent: "SINTER tags:a tags:42", params: map[string]any{"limit": 2}, reply: []any{"9", "3", "x", "5"}, ids: []int64{3, 5}},
	{command: words("SUNION a b"), reply: []any{"2", "1"}, ids: []int64{1, 2}},
	{command: words("SDIFF a b"), reply: []any{"2"}, ids: []int64{2}},
	{command: words("SMEMBERS a"), reply: []any{"2"}, ids: []int64{2}},
	{command: words("SRANDMEMBER a 2"), reply: []any{"2", "1"}, ids: []int64{2, 1}},
	{command: words("ZINTER 2 a b WEIGHTS 1 {lon} WITHSCORES"), sent: "ZINTER 2 a b WEIGHTS 1 13.4 WITHSCORES", params: map[string]any{"score": "f1", "limit": 2},
		reply: []any{"1", "0.5", "2", "1", "3", "4"}, ids: []int64{1, 2}, scores: []any{0.5, 1.0}},
	{command: words("ZINTER 2 a b WITHSCORES"), params: map[string]any{"score": "f1", "limit": 2, "reverse": true},
		reply: []any{"1", "0.5", "2", "1", "3", "4"}, ids: []int64{3, 2}, scores: []any{4.0, 1.0}},
	{command: words("ZUNION 1 a"), params: map[string]any{"reverse": true, "limit": 1}, reply: []any{"1", "2"}, ids: []int64{2}},
	{command: words("ZDIFF 2 a b"), reply: []any{"1", "2"}, ids: []int64{1, 2}},
	{command: words("ZRANGEBYSCORE a 1 {n} LIMIT 0 2"), sent: "ZRANGEBYSCORE a 1 9 LIMIT 0 2", reply: []any{"1", "2"}, ids: []int64{1, 2}},
	{command: words("ZREVRANGEBYSCORE a +inf 1 WITHSCORES LIMIT 0 2"), params: map[string]any{"score": "f1"}, reply: []any{"1", "2"}, ids: []int64{1}, scores: []any{2.0}},
	{command: words("ZRANGEBYLEX a [x + LIMIT 0 2"), reply: []any{"1"}, ids: []int64{1}},
	{command: words("ZREVRANGEBYLEX a + - LIMIT 0 2"), reply: []any{"1"}, ids: []int64{1}},
	{command: words("ZRANDMEMBER a 2 WITHSCORES"), params: map[string]any{"score": "f1"}, reply: []any{"1", "2"}, ids: []int64{1}, scores: []any{2.0}},
	{command: words("HRANDFIELD a 2"), reply: []any{"1", "2"}, ids: []int64{1, 2}},
	{command: words("XRANGE a - + COUNT 9"), params: map[string]any{"id_field": "item", "score": "f1"}, ids: []int64{5}, scores: []any{0.5},
		reply: []any{[]any{"1-1", []any{"item", "5", "f1", "0.5"}}, []any{"1-2", []any{"f1", "1"}}, []any{"1-3", []any{"item", "6"}}}},
	{command: words("XREVRANGE a + - COUNT 2"), params: map[string]any{"id_field": "item"}, reply: []any{[]any{"1-1", []any{"item", "5"}}}, ids: []int64{5}},
	{command: words("FCALL_RO near 1 {{u}}:places {tab}"), sent: "FCALL_RO near 1 {u}:places new", params: map[string]any{"reply": "ids"}, reply: []any{4, "5"}, ids: []int64{4, 5}},
	{command: words("FCALL_RO near 1 a"), params: map[string]any{"reply": "ids_scores", "score": "f1"}, reply: []any{[]any{4, "5"}, []any{"6", "0.5"}}, ids: []int64{4, 6}, scores: []any{5.0, 0.5}},
	{command: words("FCALL_RO near 1 a"), params: map[string]any{"reply": "ids_scores", "score": "f1"}, reply: []any{4, "5"}, ids: []int64{4}, scores: []any{5.0}},
	{command: words("VSIM a FP32 {near} WITHSCORES COUNT 2"), sent: "VSIM a FP32 \x00\x00\x00?\x00\x00\x80\xbf WITHSCORES COUNT 2", params: map[string]any{"score": "f1"},
		reply: []any{"4", "0.5"}, ids: []int64{4}, scores: []any{0.5}},
	{command: []any{"FT.SEARCH", "docs", "*=>[KNN {n} @v $v AS far]", "LIMIT", 0, 9, "PARAMS", 2, "v", "{near}", "SORTBY", "far", "DIALECT", 2},
		sent:   "FT.SEARCH docs *=>[KNN 9 @v $v AS far] LIMIT 0 9 PARAMS 2 v \x00\x00\x00?\x00\x00\x80\xbf SORTBY far DIALECT 2",
		params: map[string]any{"id_prefix": "doc:", "score": "far"}, reply: []any{3, "doc:4", []any{"far", "0.5", "t", "x"}, "doc:5", nil, "doc:6", []any{"far", "1"}}, ids: []int64{4, 6}, scores: []any{0.5, 1.0}},
	{command: words("FT.SEARCH docs rain NOCONTENT WITHSCORES LIMIT 0 9"), params: map[string]any{"score": "f1"}, reply: []any{2, "4", "0.5", "5", "1"}, ids: []int64{4, 5}, scores: []any{0.5, 1.0}},
	{command: words("FT.SEARCH docs rain NOCONTENT LIMIT 0 9"), reply: []any{2, "4", "5"}, ids: []int64{4, 5}},
	{command: words("FT.SEARCH docs rain WITHSCORES RETURN 1 nr LIMIT 0 9"), params: map[string]any{"score": "f1", "id_field": "nr"}, reply: []any{1, "doc:4", "0.5", []any{"nr", "4"}}, ids: []int64{4}, scores: []any{0.5}},
	{command: words("FT.HYBRID docs SEARCH rain VSIM @v $v KNN 2 K 9 COMBINE RRF 2 WINDOW 9 YIELD_SCORE_AS far LIMIT 0 9 PARAMS 2 v {near}"), params: map[string]any{"score": "far"},
		sent:  "FT.HYBRID docs SEARCH rain VSIM @v $v KNN 2 K 9 COMBINE RRF 2 WINDOW 9 YIELD_SCORE_AS far LIMIT 0 9 PARAMS 2 v \x00\x00\x00?\x00\x00\x80\xbf",
		reply: []any{"total_results", 2, "results", []any{[]any{"__key", "4", "far", "0.5"}, []any{"far", "1"}}, "warnings", []any{}, "execution_time", "0.1"}, ids: []int64{4}, scores: []any{0.5}},

	{command: words("BITCOUNT seen:{id}"), sent: "BITCOUNT seen:7", reply: 4, value: int64(4)},
	{command: words("GEODIST places {id} home km"), sent: "GEODIST places 7 home km", params: map[string]any{"value": "f1"}, reply: "2.5", value: 2.5},
	{command: words("GETRANGE a:{title} 0 3"), sent: "GETRANGE a:home 0 3", params: map[string]any{"value": "title"}, reply: "text", value: "text"},
	{command: words("HGET a:{id} t"), sent: "HGET a:7 t", params: map[string]any{"value": "title"}, reply: nil, value: nil},
	{command: words("HGETALL a:{id}"), sent: "HGETALL a:7", params: map[string]any{"fields": []any{"likes", "title"}, "value": nil}, reply: []any{"x", "1", "t", "rain", "likes", "3"}, value: int64(3)},
	{command: words("HSTRLEN a:{id} t"), sent: "HSTRLEN a:7 t", reply: 2, value: int64(2)},
	{command: words("LINDEX a:{id} -1"), sent: "LINDEX a:7 -1", reply: "x", value: nil},
	{command: words("SINTERCARD 2 tags:{id} likes:{user} LIMIT 5"), sent: "SINTERCARD 2 tags:7 likes:42 LIMIT 5", reply: 3, value: int64(3)},
	{command: words("XLEN a:{user}"), sent: "XLEN a:42", reply: 3, value: int64(3)},
	{command: words("ZCOUNT a:{id} ({n} +inf"), sent: "ZCOUNT a:7 (9 +inf", reply: 3, value: int64(3)},
	{command: words("ZINTERCARD 1 a:{id}"), sent: "ZINTERCARD 1 a:7", reply: 3, value: int64(3)},
	{command: words("ZLEXCOUNT a:{id} - +"), sent: "ZLEXCOUNT a:7 - +", reply: 3, value: int64(3)},
	{command: words("ZRANK a {id}"), sent: "ZRANK a 7", reply: nil, value: nil},
	{command: words("ZREVRANK a {id}"), sent: "ZREVRANK a 7", reply: 2, value: int64(2)},
	{command: words("ZSCORE a:{user} {id}"), sent: "ZSCORE a:42 7", reply: "2", value: int64(2)},
	{command: words("FCALL_RO score 1 item:{id} {n}"), sent: "FCALL_RO score 1 item:7 9", params: map[string]any{"reply": "scalar"}, reply: "2", value: int64(2)},
	{command: words("FCALL_RO score 1 item:{id} {n}"), sent: "FCALL_RO score 1 item:7 9", params: map[string]any{"reply": "map", "fields": []any{"likes"}, "value": nil}, reply: []any{"likes", 2}, value: int64(2)},
}

var commandContext = map[string]any{"lon": 13.4, "near": []float32{0.5, -1}, "tab": "new", "n": 9}

func runCommand(t *testing.T, reg *registry.Registry, lookup bool, command []any, params map[string]any, c rankdtest.Case) (rowset.RowSet, error) {
	c.Params, c.Registry, c.UserID = map[string]any{"endpoint": "ep_0001", "command": command}, reg, 42
	op := "candidates"
	if lookup {
		op, c.Params["value"] = "lookup", "likes"
		title := rowset.NewStringBuilder(1004, 1)
		title.Append([]byte("home"))
		c.Inputs = rankdtest.Inputs(rowset.Dense(rowset.NewBatch([]int64{7}, title.Column())))
	}
	maps.Copy(c.Params, params)
	maps.DeleteFunc(c.Params, func(_ string, value any) bool { return value == nil })
	return rankdtest.Run(specOf(t, op), c)
}

// TestCommands sends each command of the table, in all shapes of its reply.
func TestCommands(t *testing.T) {
	reg, lacking := commandTables().Load(), builtin.StatedCommands()
	for _, tt := range commandCases {
		text := fmt.Sprint(tt.command...)
		var sent []string
		var encoded resp.Batch
		out, err := runCommand(t, reg, tt.ids == nil, tt.command, tt.params, rankdtest.Case{Context: commandContext, Redis: func(command []string) any {
			sent = append(sent, strings.Join(command, " "))
			encoded.Cmd(command...)
			return tt.reply
		}})
		require.NoError(t, err, text)
		if tt.sent == "" {
			tt.sent = strings.TrimSuffix(fmt.Sprintln(tt.command...), "\n")
		}
		require.Equal(t, []string{tt.sent}, sent)
		if tt.ids != nil {
			assert.Equal(t, tt.ids, rankdtest.IDs(out), text)
			for _, key := range []registry.KeyID{1001, 1002} {
				if out.Batch.Has(key) {
					assert.Equal(t, tt.scores, rankdtest.Values(out, key), text)
				}
			}
		} else {
			for _, key := range []registry.KeyID{1001, 1003, 1004} {
				if fields := tt.params["fields"]; out.Batch.Has(key) && (key != 1004 || tt.params["value"] == "title") {
					assert.Equal(t, []any{tt.value}, rankdtest.Values(out, key), "%s %v", text, fields)
				}
			}
		}
		name, _, _ := strings.Cut(tt.sent, " ")
		for form, shared := range builtin.StatedCommands() {
			if !strings.HasPrefix(form, name+" ") {
				continue
			}
			delete(lacking, form)
			assert.Equal(t, shared, resp.ReadOnly(encoded.Encoded()), "whether %s is shared", name)
			first := slices.IndexFunc(strings.Fields(form), func(word string) bool { return strings.HasPrefix(word, "key") || word == "index" })
			key, ok := cluster.Key(encoded.Encoded())
			require.True(t, ok)
			assert.Equal(t, strings.Fields(tt.sent)[first], string(key), "the slot of %s", name)
		}
	}
	assert.Empty(t, lacking, "commands without a case")
}

// A number has one text, whether the plan or a request states it.
func TestNumbersOfArguments(t *testing.T) {
	for number, want := range map[float64]string{1e6: "1000000", -3: "-3", 123456789: "123456789", 0: "0", 0.25: "0.25", 1e-7: "1e-07", 1e300: "1e+300"} {
		for _, arg := range []any{number, "{lon}"} {
			var sent string
			_, err := runCommand(t, commandTables().Load(), true, []any{"ZSCORE", "a:{id}", arg}, nil, rankdtest.Case{Context: map[string]any{"lon": number}, Redis: func(command []string) any {
				sent = strings.Join(command, " ")
				return nil
			}})
			require.NoError(t, err)
			assert.Equal(t, "ZSCORE a:7 "+want, sent)
		}
	}
}

// A reply of another shape fails the node, or its row if the node may be partial.
func TestRepliesOfAnotherShape(t *testing.T) {
	reg := commandTables().Load()
	stream, search := map[string]any{"id_field": "item"}, map[string]any{"score": "f1"}
	for _, tt := range []struct {
		command string
		params  map[string]any
		reply   any
	}{
		{"FCALL_RO f 1 a:{id}", map[string]any{"reply": "ids"}, []any{[]any{"1"}}},
		{"FCALL_RO f 1 a:{id}", map[string]any{"reply": "ids"}, "1"},
		{"FCALL_RO f 1 a:{id}", map[string]any{"reply": "ids_scores", "score": "f1"}, []any{"1", "2", "3"}},
		{"FCALL_RO f 1 a:{id}", map[string]any{"reply": "ids_scores", "score": "f1"}, []any{[]any{"1", "2"}, "3", "4"}},
		{"FCALL_RO f 1 a:{id}", map[string]any{"reply": "ids_scores", "score": "f1"}, []any{[]any{"1"}}},
		{"FCALL_RO f 1 a:{id}", map[string]any{"reply": "ids"}, []any{"1", errors.New("ERR")}},
		{"FCALL_RO f 1 a:{id}", map[string]any{"reply": "ids_scores", "score": "f1"}, []any{"1", errors.New("ERR")}},
		{"XRANGE a:{id} - + COUNT 5", stream, []any{"1-1"}},
		{"XRANGE a:{id} - + COUNT 5", stream, []any{[]any{"1-1", "item"}}},
		{"XRANGE a:{id} - + COUNT 5", stream, []any{[]any{"1-1"}}},
		{"FT.SEARCH i{id} x LIMIT 0 5", nil, []any{}},
		{"FT.SEARCH i{id} x LIMIT 0 5", nil, []any{"doc"}},
		{"FT.SEARCH i{id} x LIMIT 0 5", nil, []any{1, "doc"}},
		{"FT.SEARCH i{id} x LIMIT 0 5", nil, []any{2, "4", "5"}},
		{"FT.SEARCH i{id} x WITHSCORES LIMIT 0 5", search, []any{1, "4", []any{}}},
		{"FT.HYBRID i{id} SEARCH x VSIM @v $v LIMIT 0 5", nil, []any{0}},
		{"FT.HYBRID i{id} SEARCH x VSIM @v $v LIMIT 0 5", nil, []any{"results", "none"}},
		{"FT.HYBRID i{id} SEARCH x VSIM @v $v LIMIT 0 5", nil, []any{"results", []any{"doc"}}},
	} {
		var shortfall task.Shortfall
		c := rankdtest.Case{Inputs: rankdtest.Inputs(rankdtest.Rows(8, 9)), Redis: func(command []string) any {
			if strings.HasSuffix(strings.Fields(tt.command)[1], "{id}") && strings.HasSuffix(command[1], "8") || strings.HasSuffix(command[len(command)-1], ":8") {
				return errors.New("WRONGTYPE")
			}
			return tt.reply
		}}
		_, err := runCommand(t, reg, false, words(tt.command), tt.params, c)
		require.ErrorIs(t, err, task.ErrRedis, tt.command)
		c.Partial, c.Shortfall = true, &shortfall
		out, err := runCommand(t, reg, false, words(tt.command), tt.params, c)
		require.NoError(t, err, tt.command)
		assert.Zero(t, out.Len(), "%s: %v", tt.command, tt.reply)
		assert.Equal(t, 2, shortfall.Dropped, tt.command)
	}
	for _, tt := range []struct {
		reply, shape any
	}{{[]any{"likes"}, "map"}, {[]any{"likes", errors.New("ERR")}, "map"}, {[]any{[]any{"likes", "1"}}, "map"}, {"likes", "map"}, {[]any{}, "scalar"}} {
		params := map[string]any{"reply": tt.shape}
		if tt.shape == "map" {
			params["value"], params["fields"] = nil, []any{"likes"}
		}
		_, err := runCommand(t, reg, true, words("FCALL_RO f 1 a:{id} {n}"), params, rankdtest.Case{Context: commandContext, Redis: func([]string) any { return tt.reply }})
		require.ErrorIs(t, err, task.ErrRedis)
		assert.ErrorContains(t, err, "FCALL_RO f 1 a:7: reply is")
	}
}

// A hybrid search that tells of something that it left out is told of in the answer.
func TestWarningsOfASearch(t *testing.T) {
	var shortfall task.Shortfall
	out, err := runCommand(t, commandTables().Load(), false, words("FT.HYBRID docs SEARCH x VSIM @v $v LIMIT 0 5"), nil, rankdtest.Case{Shortfall: &shortfall, Redis: func([]string) any {
		return []any{"total_results", 1, "results", []any{[]any{"__key", "4"}}, "warnings", []any{"Timeout limit was reached"}}
	}})
	require.NoError(t, err)
	assert.Equal(t, []int64{4}, rankdtest.IDs(out))
	assert.ErrorContains(t, shortfall.Err, "FT.HYBRID docs: Timeout limit was reached")
}

// What cannot be done rightly is refused when the plan is loaded.
func TestCommandsAreRefused(t *testing.T) {
	single, many := commandTables(), commandTables()
	many.Endpoints = strings.Replace(many.Endpoints, "port = 6379", "port = 6379\ncluster = true", 1)
	regs := map[bool]*registry.Registry{false: single.Load(), true: many.Load()}
	geo := "GEOSEARCH shops FROMLONLAT 1 2 BYRADIUS 5 km "
	for _, tt := range []struct {
		command string
		params  map[string]any
		text    string
	}{
		{"GEOSEACH shops", nil, `params.command[0]: "GEOSEACH" is not a command that a plan may state; did you mean GEOSEARCH?`},
		{"{tab} shops", nil, `params.command[0]: "" is not a command`},
		{"ZADD z 1 a", nil, "params.command[0]: ZADD writes, and a plan only reads"},
		{"XREAD BLOCK 0 STREAMS a $", nil, "params.command[0]: XREAD may wait for somebody who writes: read a stream by XREVRANGE"},
		{"KEYS *", nil, "params.command[0]: KEYS names no key, or has no bound"},
		{"SCAN 0", nil, "params.command[0]: SCAN names no key, or has no bound"},
		{"SORT_RO a", nil, "params.command[0]: SORT_RO reads keys that it does not name"},
		{"EVAL_RO x 1 a", nil, "params.command[0]: EVAL_RO runs a script that the server may have forgotten: load a function, and state FCALL_RO"},
		{"LRANGE a 0 9", nil, `params.command[0]: LRANGE is what candidates sends for kind "list"`},
		{"HGET a f", nil, "params.command: HGET answers scalar, which lookup reads"},
		{geo, nil, "params.command: GEOSEARCH lacks its count, and nothing else bounds the reply: the arguments are key [FROMMEMBER member]"},
		{geo + "COUNT 0", nil, "params.command[9]: GEOSEARCH takes its count from the plan: an integer from 1 to 100000"},
		{geo + "COUNT {n}", nil, "params.command[9]: GEOSEARCH takes its count from the plan"},
		{geo + "COUNT 5 COUNT 9", nil, "params.command[11]: GEOSEARCH has two counts"},
		{geo + "COUNT 5 WITHCOORD", nil, `params.command[10]: GEOSEARCH takes no option "WITHCOORD" here: the arguments are key [FROMMEMBER member]`},
		{geo + "COUNT 5 {tab}", nil, "params.command[10]: GEOSEARCH takes no option"},
		{geo + "COUNT 5 WITHDIST", nil, "params.score: must name the column for the scores that this GEOSEARCH answers"},
		{geo + "COUNT 5", map[string]any{"score": "f1"}, "params.score: needs scores, and this GEOSEARCH answers ids without any"},
		{geo + "COUNT 5", map[string]any{"limit": 3}, "params.limit: is not for GEOSEARCH, whose count bounds the rows"},
		{geo + "COUNT 5", map[string]any{"reply": "ids_scores"}, `params.reply: is "ids_scores", and this GEOSEARCH answers "ids"`},
		{geo + "COUNT 5", map[string]any{"reverse": true}, "params.reverse: is not for GEOSEARCH"},
		{geo + "COUNT 5", map[string]any{"key": "shops"}, "params.key: is not for a command"},
		{geo + "COUNT 5", map[string]any{"kind": "list"}, "params.kind: is not for a command"},
		{geo + "COUNT 5", map[string]any{"min_member": "a"}, "params.min_member: is not for a command"},
		{geo + "COUNT 5", map[string]any{"id_field": "a"}, "params.id_field: is for entries with fields"},
		{"GEOSEARCH shops FROMLONLAT 1", nil, "params.command: GEOSEARCH lacks its latitude"},
		{"GEOSEARCH shops FROMLONLAT {seen} 1", nil, "params.command[3]: {seen} has type int_list"},
		{"GEOSEARCH shops FROMLONLAT {likes} 1", nil, "params.command[3]: {likes} is a column"},
		{"VSIM a FP32 v{near} COUNT 5", nil, "params.command[3]: {near} is a vector, which is an argument by itself"},
		{"SRANDMEMBER a", nil, "params.command: SRANDMEMBER lacks its count"},
		{"SRANDMEMBER a 3", map[string]any{"cache_age": 1.0}, "params.cache_age: has no effect: the engine keeps no reply of this SRANDMEMBER in its memory"},
		{"SINTER a b", map[string]any{"cache_age": 1.0}, "params.cache_age: has no effect"},
		{"SRANDMEMBER a -3", nil, "params.command[2]: SRANDMEMBER takes its count from the plan"},
		{"SINTER a:{id} b:{id}", nil, "params.command[2]: SINTER takes marks of the row in one argument, and command[1] has some"},
		{"SINTER a:{id} b", nil, "params.command[1]: has {id}, so the node needs an input"},
		{"ZINTER 3 a b", nil, "params.command: ZINTER lacks its key"},
		{"ZINTER {n} a b", nil, "params.command[1]: ZINTER takes its numkeys from the plan"},
		{"FCALL_RO f 0", map[string]any{"reply": "ids"}, "params.command[2]: FCALL_RO takes its numkeys from the plan: an integer from 1"},
		{"FCALL_RO f 1 a", nil, "params.reply: must say what the function answers"},
		{"FCALL_RO f 1 a", map[string]any{"reply": "map"}, "params.reply: must be"},
		{"SMEMBERS a:{lon}", nil, "params.command[1]: SMEMBERS takes no {lon} of type float in a key, which takes an int, a string or a bool"},
		{"ZINTER 2 a {near}", nil, "params.command[3]: ZINTER takes no {near} of type vector in a key"},
		{"SRANDMEMBER a 5{id}", nil, "params.command[2]: SRANDMEMBER takes its count from the plan"},
		{"SRANDMEMBER a +5", nil, "params.command[2]: SRANDMEMBER takes its count from the plan"},
		{"ZINTER 2{id} a b", nil, "params.command[1]: ZINTER takes its numkeys from the plan"},
		{"SMEMBERS{id} a", nil, `params.command[0]: "" is not a command`},
		{geo + "COUNT 5 ASC{id}", nil, "params.command[10]: GEOSEARCH takes no option"},
		{"XRANGE a - + COUNT 5", nil, "params.id_field: must name the field of an entry that has the id of the row"},
		{"FT.SEARCH docs @t:{tab} LIMIT 0 5", nil, "params.command[2]: FT.SEARCH takes no text from outside in a query"},
		{"FT.SEARCH docs @t:{user} LIMIT 0 5", nil, "params.command[2]: FT.SEARCH takes no text from outside in a query"},
		{"FT.SEARCH docs x", nil, "params.command: FT.SEARCH lacks its count, and nothing else bounds the reply"},
		{"FT.SEARCH docs x NOCONTENT LIMIT 0 5", map[string]any{"id_field": "nr"}, "params.id_field: is for entries with fields"},
	} {
		_, err := runCommand(t, regs[false], false, words(tt.command), tt.params, rankdtest.Case{})
		var bad *plan.Error
		require.ErrorAs(t, err, &bad, tt.command)
		assert.ErrorContains(t, err, tt.text)
	}
	for command, text := range map[string]string{
		"SINTER {{u:{user}}}:a {{u:{user}}}:b":  "",
		"SINTER {{a}}:{user} a":                 "",
		"SINTER {{}}a {{}}a":                    "",
		"SINTER a:{user} a:{user}":              "",
		"SRANDMEMBER a:{user} 3":                "",
		"SINTER a b":                            "params.command[2]: SINTER needs all keys in one slot of the Redis Cluster: give them the same hash tag",
		"SINTER {{u:{user}}}:a {{u:{tab}}}:b":   "params.command[2]: SINTER needs all keys in one slot",
		"SINTER a:{user}P.tab a:{tab}":          "params.command[2]: SINTER needs all keys in one slot",
		"SINTER {{}}a {{}}b":                    "params.command[2]: SINTER needs all keys in one slot",
		"ZINTER 2 likes:{{a}} likes:{{b}}":      "params.command[3]: ZINTER needs all keys in one slot",
		"ZINTER 3 {{a}}:1 {{a}}:2 {user}:{{a}}": "params.command[4]: ZINTER needs all keys in one slot",
	} {
		_, err := runCommand(t, regs[true], false, words(command), nil, rankdtest.Case{Redis: func([]string) any { return []any{} }})
		if text == "" {
			require.NoError(t, err, command)
		} else {
			require.ErrorContains(t, err, text, command)
		}
	}
	for _, tt := range []struct {
		command string
		params  map[string]any
		text    string
	}{
		{"SMEMBERS a:{id}", nil, "params.command: SMEMBERS answers ids, which candidates reads"},
		{"HGETALL a:{id}", nil, `params.reply: is "map", which takes fields alone`},
		{"ZSCORE a {id}", map[string]any{"fields": []any{"likes"}}, `params.reply: is "scalar", which takes value alone`},
		{"ZSCORE a {id}", map[string]any{"kind": "string"}, "params.kind: is not for a command"},
		{"HGETALL a:{id}", map[string]any{"fields": []any{"likes"}, "value": nil, "max_age": 5, "timestamp": "likes"}, "params.max_age: is not for a command"},
		{"ZSCORE a {far}", nil, "params.command[2]: {far} is a column of type float; a key takes an int or a string"},
		{"ZSCORE a b", map[string]any{"by": "likes"}, "params.by: has no effect"},
		{"ZSCORE a {id}", map[string]any{"cache_age": 1.0}, "params.cache_age: has no effect"},
	} {
		_, err := runCommand(t, regs[false], true, words(tt.command), tt.params, rankdtest.Case{})
		require.ErrorContains(t, err, tt.text)
	}
}
