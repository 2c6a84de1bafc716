package builtin

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/rankd/rankd/internal/errtext"
	"github.com/rankd/rankd/plan"
	"github.com/rankd/rankd/registry"
	"github.com/rankd/rankd/resp"
	"github.com/rankd/rankd/task"
)

// A command is one that a node may state: it reads, names keys or an index, does not wait for others, and has a bound on
// its entries, or the node's limit. Immutable; any goroutine.
type command struct {
	names string // of commands with the same arguments
	// form has the arguments. A word in lower case stands for a value, and one in upper case for an option, behind which its
	// values are. Options follow the other values, in any order; those in brackets may be left out. As many values stand
	// for "x..." as the "numkeys" or "n" before it says, and all that are left for "x*".
	form  string
	reply replyShape // without options
	order replyOrder
}

// replyOrder says what order the entries of a reply have.
type replyOrder uint8

const (
	ordered   replyOrder = iota // by its arguments
	ascending                   // of scores
	unordered                   // of a set: the lowest ids count
	indexed                     // by an index that no key tells of: nothing is kept or shared
	drawn                       // by chance, or by a function: no two requests share a reply either
)

// commands are all that a node may state. Those of modules and of Redis 8 are known by their documentation alone.
var commands = []command{
	{"GEOSEARCH", "key [FROMMEMBER member] [FROMLONLAT longitude latitude] [BYRADIUS radius unit] [BYBOX width height unit] [ASC] [DESC] COUNT count [ANY] [WITHDIST]", idsReply, ordered},
	{"SINTER SUNION SDIFF", "key*", idsReply, unordered},
	{"SMEMBERS", "key", idsReply, unordered},
	{"SRANDMEMBER", "key count", idsReply, drawn},
	{"ZINTER ZUNION", "numkeys key... [WEIGHTS weight...] [AGGREGATE how] [WITHSCORES]", idsReply, ascending},
	{"ZDIFF", "numkeys key... [WITHSCORES]", idsReply, ascending},
	{"ZRANGEBYSCORE ZREVRANGEBYSCORE", "key from to [WITHSCORES] LIMIT offset count", idsReply, ordered},
	{"ZRANGEBYLEX ZREVRANGEBYLEX", "key from to LIMIT offset count", idsReply, ordered},
	{"ZRANDMEMBER", "key count [WITHSCORES]", idsReply, drawn},
	{"HRANDFIELD", "key count [WITHVALUES]", idsReply, drawn},
	{"XRANGE XREVRANGE", "key from to COUNT count", streamReply, ordered},
	{"FCALL_RO", "function numkeys key... argument*", statedReply, drawn},
	{"VSIM", "key [ELE element] [FP32 vector] [WITHSCORES] COUNT count [EPSILON distance] [EF effort] [FILTER query] [FILTER-EF effort] [TRUTH] [NOTHREAD]", idsReply, indexed},
	{"FT.SEARCH", "index query [NOCONTENT] [VERBATIM] [WITHSCORES] [RETURN n field...] [SORTBY attribute] [ASC] [DESC] [SCORER scorer] [TIMEOUT ms] LIMIT offset count [PARAMS n parameter...] [DIALECT version]", searchReply, indexed},
	{"FT.HYBRID", "index SEARCH query [SCORER scorer] [YIELD_SCORE_AS name] VSIM field vector [KNN n setting...] [RANGE n setting...] [FILTER query] [COMBINE method n setting...] " +
		"[SORTBY n attribute...] [NOSORT] LIMIT offset count [LOAD n field...] [PARAMS n parameter...] [TIMEOUT ms]", hybridReply, indexed},
	{"BITCOUNT XLEN", "key", scalarReply, ordered},
	{"GEODIST", "key member1 member2 unit", scalarReply, ordered},
	{"GETRANGE", "key start end", scalarReply, ordered},
	{"HGET HSTRLEN", "key field", scalarReply, ordered},
	{"HGETALL", "key", mapReply, ordered},
	{"LINDEX", "key index", scalarReply, ordered},
	{"SINTERCARD ZINTERCARD", "numkeys key... [LIMIT most]", scalarReply, ordered},
	{"ZCOUNT ZLEXCOUNT", "key min max", scalarReply, ordered},
	{"ZRANK ZREVRANK ZSCORE", "key member", scalarReply, ordered},
}

// otherCommands says why a node may not state others, and what it may do instead.
var otherCommands = []struct{ names, why string }{
	{"APPEND DECR DECRBY DEL EXPIRE FCALL GEOADD GETDEL GETEX GETSET HDEL HINCRBY HSET INCR INCRBY LPOP LPUSH LTRIM MSET PFADD RPOP RPUSH SADD SDIFFSTORE SET SETEX SINTERSTORE " +
		"SPOP SREM SUNIONSTORE UNLINK VADD XADD XDEL XTRIM ZADD ZINCRBY ZINTERSTORE ZPOPMAX ZPOPMIN ZRANGESTORE ZREM ZUNIONSTORE", "writes, and a plan only reads"},
	{"BLMOVE BLMPOP BLPOP BRPOP BZMPOP BZPOPMAX BZPOPMIN SUBSCRIBE WAIT XREAD XREADGROUP", "may wait for somebody who writes: read a stream by XREVRANGE"},
	{"DBSIZE FT.AGGREGATE HSCAN KEYS RANDOMKEY SCAN SSCAN ZSCAN", "names no key, or has no bound on what it reads: keep a set or an index, and read that"},
	{"SORT SORT_RO", "reads keys that it does not name: take the ids by candidates, and columns by lookup"},
	{"EVAL EVALSHA EVALSHA_RO EVAL_RO", "runs a script that the server may have forgotten: load a function, and state FCALL_RO"},
	{"LRANGE ZRANGE ZREVRANGE", "is what candidates sends for kind \"list\" and \"sorted_set\""},
	{"GET HMGET LLEN MGET SCARD SISMEMBER SMISMEMBER STRLEN ZCARD ZMSCORE", "is what lookup sends for its kinds"},
}

// commandParams are the parameters of a command whose reply has one of these shapes.
func commandParams(columns bool, shapes ...replyShape) []plan.ParamSchema {
	names := make([]string, len(shapes))
	for i, shape := range shapes {
		names[i] = replyNames[shape]
	}
	return []plan.ParamSchema{
		{Name: "command", Type: plan.Template, List: true, MinItems: 2, Argument: true, Columns: columns, Added: true,
			Doc: "A command of Redis, its name first, in place of `key` and `kind`: see *Commands*. An argument is a text with the marks of a key, a number, or a parameter such as `P.lon`."},
		{Name: "reply", Type: plan.Enum, Added: true, Source: plan.SourceRule{OneOf: names},
			Doc: "The shape of the reply of `FCALL_RO`. Other commands have their own."},
	}
}

// statedCommand is a command as a node states it. Immutable once built; any goroutine.
type statedCommand struct {
	*command
	name    string
	args    []*plan.KeyTemplate
	keys    []int // positions of the keys
	at      int   // of the argument that rows fill in, or else of the first key
	count   int   // bounds the entries of a reply; 0: the limit of the node does
	options map[string]bool
	shape   replyShape
}

// commandOf returns the command of a node, or nil if it states none. instead are parameters that a command takes the place of.
func commandOf(n *plan.Node, instead ...string) (*statedCommand, error) {
	p := &n.Params
	s := &statedCommand{args: p.Templates("command"), options: make(map[string]bool)}
	switch {
	case len(s.args) > 0:
	case p.Template("key") == nil:
		return nil, plan.ParamErrorf("key", "is missing, must be a key template, unless there is a command")
	case p.Given("reply"):
		return nil, plan.ParamErrorf("reply", "is for a command")
	default:
		return nil, nil
	}
	for _, name := range append(instead, "key", "kind") {
		if p.Given(name) {
			return nil, plan.ParamErrorf(name, "is not for a command, which says all by its arguments")
		}
	}
	name, _ := s.literal(0)
	s.name = strings.ToUpper(name)
	var names []string
	for i := range commands {
		own := strings.Fields(commands[i].names)
		if names = append(names, own...); slices.Contains(own, s.name) {
			s.command = &commands[i]
		}
	}
	if s.command == nil {
		return nil, s.unknown(names)
	}
	if err := s.read(); err != nil {
		return nil, err
	}
	if err := s.place(p.Endpoint("endpoint").Cluster); err != nil {
		return nil, err
	}
	return s, s.shaped(p.String("reply"))
}

// unknown returns why the command is none of these.
func (s *statedCommand) unknown(names []string) error {
	for _, other := range otherCommands {
		if slices.Contains(strings.Fields(other.names), s.name) {
			return s.fault(0, "%s", other.why)
		}
	}
	hint := ""
	if near, ok := errtext.NearestLike(s.name, names); ok {
		hint = "; did you mean " + near + "?"
	}
	return plan.ParamErrorf(plan.ItemPath("command", 0), "%s is not a command that a plan may state%s", errtext.Quote(s.name), hint)
}

// fault returns an error about argument i, or about the whole if it is negative.
func (s *statedCommand) fault(i int, format string, args ...any) error {
	at := "command"
	if i >= 0 {
		at = plan.ItemPath(at, i)
	}
	return plan.ParamErrorf(at, "%s %s", s.name, fmt.Sprintf(format, args...))
}

// literal returns the text of argument i. ok is false if the request or a row has a part in it.
func (s *statedCommand) literal(i int) (text string, ok bool) {
	if text, _, ok = s.args[i].Literal(); !ok || s.args[i].PerRow() {
		return "", false
	}
	return text, true
}

// read matches the arguments with the form.
func (s *statedCommand) read() error {
	values, option := map[string][]string{}, "" // by option
	for _, word := range strings.Fields(s.form) {
		if word = strings.Trim(word, "[]"); word == strings.ToUpper(word) {
			option, values[word] = word, []string{}
		} else {
			values[option] = append(values[option], word)
		}
	}
	next, many := 1, 0
	for option = ""; ; next++ {
		for _, word := range values[option] {
			value, end := strings.TrimRight(word, ".*"), next+1
			switch {
			case strings.HasSuffix(word, "..."):
				end = next + many
			case strings.HasSuffix(word, "*"):
				end = len(s.args)
			}
			for ; next < end; next++ {
				if next >= len(s.args) {
					return s.fault(-1, "lacks its %s: the arguments are %s", value, s.form)
				}
				number, err := s.value(value, next)
				if err != nil {
					return err
				}
				many = cmp.Or(number, many)
			}
		}
		if s.options[option] = true; next >= len(s.args) {
			break
		}
		text, literal := s.literal(next)
		if option = strings.ToUpper(text); !literal || option == "" || values[option] == nil {
			return s.fault(next, "takes no option %s here: the arguments are %s", errtext.Quote(text), s.form)
		}
	}
	if strings.Contains(s.form, "count") && s.count == 0 {
		return s.fault(-1, "lacks its count, and nothing else bounds the reply: the arguments are %s", s.form)
	}
	return nil
}

// value reads argument i, which stands for a value of this name, and returns the number of further ones that it states.
func (s *statedCommand) value(name string, i int) (number int, err error) {
	switch text, literal := s.literal(i); name {
	case "key":
		s.keys = append(s.keys, i)
		for _, part := range s.args[i].AllParts() {
			if part.Param != nil && (part.Param.Type == registry.Float || part.Param.Type == registry.Vector) {
				return 0, s.fault(i, "takes no {%s} of type %s in a key, which takes an int, a string or a bool", part.Param.Name, part.Param.Type)
			}
		}
	case "numkeys", "n", "count":
		number, err = strconv.Atoi(text)
		switch {
		case !literal || err != nil || strconv.Itoa(number) != text || number < 1 || number > candidatesMax:
			return 0, s.fault(i, "takes its %s from the plan: an integer from 1 to %d", name, candidatesMax)
		case name == "count" && s.count > 0:
			return 0, s.fault(i, "has two counts")
		case name == "count":
			s.count, number = number, 0
		}
	case "query":
		for _, part := range s.args[i].AllParts() {
			if part.User || part.Param != nil && part.Param.Type == registry.String || part.Column != nil && (part.Column.Type == registry.String || part.Column.ID == registry.IDKey) {
				return 0, s.fault(i, "takes no text from outside in a query, of which it would be a part: give it by PARAMS where there are such, and name it by $ in the query")
			}
		}
	}
	return number, nil
}

// place finds the argument that rows fill in, and checks that a Redis Cluster has all keys in one slot.
func (s *statedCommand) place(cluster bool) error {
	s.at = 1
	if len(s.keys) > 0 {
		s.at = s.keys[0]
	}
	for _, k := range s.keys {
		if cluster && slotPattern(s.args[k]) != slotPattern(s.args[s.at]) {
			return s.fault(k, "needs all keys in one slot of the Redis Cluster: give them the same hash tag, as in {{u:{user}}}:likes and {{u:{user}}}:seen")
		}
	}
	rows := 0
	for i, arg := range s.args {
		if arg.PerRow() && rows > 0 {
			return s.fault(i, "takes marks of the row in one argument, and command[%d] has some", rows)
		} else if arg.PerRow() {
			s.at, rows = i, i
		}
	}
	return nil
}

// slotPattern returns what decides about the slot of a key: what its hash tag has, or the whole, with its marks.
func slotPattern(key *plan.KeyTemplate) string {
	all, mark := "", "\x00" // It stands for any text, also one with braces.
	for _, part := range key.AllParts() {
		switch {
		case part.User:
			all += mark + mark
		case part.Param != nil:
			all += mark + "P." + part.Param.Name + mark
		case part.Column != nil:
			all += mark + "Key." + part.Column.Name + mark
		}
		all += part.Text
	}
	before, rest, _ := strings.Cut(all, "{")
	if tag, _, closed := strings.Cut(rest, "}"); closed && tag != "" && !strings.Contains(before, mark) {
		return tag
	}
	return all
}

// shaped finds the shape of the reply, which the node may state.
func (s *statedCommand) shaped(reply string) error {
	switch s.shape = s.reply; {
	case s.shape == statedReply && reply == "":
		return plan.ParamErrorf("reply", "must say what the function answers")
	case s.shape == statedReply:
		s.shape = replyShape(slices.Index(replyNames[:], reply))
	case s.shape == idsReply && (s.options["WITHSCORES"] || s.options["WITHDIST"] || s.options["WITHVALUES"]):
		s.shape = idsScoresReply
	}
	if reply != "" && reply != replyNames[s.shape] {
		return plan.ParamErrorf("reply", "is %q, and this %s answers %q", reply, s.name, replyNames[s.shape])
	}
	return nil
}

// entriesForm returns how candidates reads the entries of the reply.
func (s *statedCommand) entriesForm(p *plan.NodeParams) (*replyForm, error) {
	f := &replyForm{shape: s.shape, scores: s.options["WITHSCORES"], bare: s.options["NOCONTENT"], id: p.String("id_field"), prefix: p.String("id_prefix")}
	scored, answers := p.Key("score") != nil, fmt.Sprintf("this %s answers %s", s.name, replyNames[s.shape])
	if scored {
		f.score = p.Key("score").Field
	}
	fields := s.shape == streamReply || s.shape >= searchReply && !f.bare
	switch {
	case s.shape == scalarReply || s.shape == mapReply:
		return nil, s.fault(-1, "answers %s, which lookup reads", replyNames[s.shape])
	case s.shape == streamReply && f.id == "":
		return nil, plan.ParamErrorf("id_field", "must name the field of an entry that has the id of the row")
	case f.id != "" && !fields:
		return nil, plan.ParamErrorf("id_field", "is for entries with fields, and %s without any", answers)
	case scored && !fields && s.shape != idsScoresReply && !f.scores:
		return nil, plan.ParamErrorf("score", "needs scores, and %s without any", answers)
	case !scored && (s.shape == idsScoresReply || f.scores):
		return nil, plan.ParamErrorf("score", "must name the column for the scores that this %s answers", s.name)
	case p.Bool("reverse") && s.order != ascending:
		return nil, plan.ParamErrorf("reverse", "is not for %s", s.name)
	case p.Given("limit") && s.count > 0:
		return nil, plan.ParamErrorf("limit", "is not for %s, whose count bounds the rows", s.name)
	case s.shape == hybridReply && f.id == "":
		f.id = "__key"
	}
	return f, nil
}

// checkAge refuses an age for values that are never kept.
func (s *statedCommand) checkAge(p *plan.NodeParams) error {
	if s != nil && p.Given("cache_age") && s.meaning(s.name) == "" {
		return plan.ParamErrorf("cache_age", "has no effect: the engine keeps no reply of this %s in its memory", s.name)
	}
	return nil
}

// meaning identifies what the reply about a key means, and what a node makes of it: see taskrun.RecallRule. It is "" unless one key and its value
// decide about the reply.
func (s *statedCommand) meaning(of string) string {
	if s.order >= indexed || len(s.keys) != 1 || s.at != s.keys[0] {
		return ""
	}
	for i, arg := range s.args {
		if text, _, literal := arg.Literal(); i != s.at && !literal {
			return ""
		} else if i != s.at {
			of += " " + strconv.Quote(text)
		}
	}
	return of
}

// statedOf returns the command that a node states, or nil.
func statedOf(n *plan.Node) *statedCommand {
	switch p := n.Prepared.(type) {
	case *preparedCandidates:
		return p.stated
	case *preparedLookup:
		return p.stated
	}
	return nil
}

// askedCommand is a command of one request. Immutable once built; any goroutine.
type askedCommand struct {
	texts []string // of the arguments; a key stands in place of that at
	at    int
}

// arguments returns the command with the values of a request. The error is that of Ctx.RedisKey.
func (s *statedCommand) arguments(c *task.Ctx) (*askedCommand, error) {
	a := &askedCommand{texts: make([]string, len(s.args)), at: s.at}
	for i, arg := range s.args {
		key, err := c.RedisKey(arg)
		if err != nil {
			return nil, err
		}
		a.texts[i] = key.Prefix
	}
	a.texts[0] = s.name
	return a, nil
}

// ask appends the command for a key.
func (a *askedCommand) ask(b *resp.Batch, key []byte) {
	b.Begin(len(a.texts))
	for i, text := range a.texts {
		if i == a.at {
			b.ArgBytes(key)
		} else {
			b.ArgString(text)
		}
	}
}

// label names the command in errors, up to the key.
func (a *askedCommand) label() string { return errtext.Text(strings.Join(a.texts[:a.at], " ")) }

// commandTable returns the commands whose replies have entries, or else values, as the rows of a table in Markdown.
func commandTable(entries bool) string {
	notes := [...]string{ascending: ", the lowest score first; `reverse` begins with the highest", unordered: ", ascending", indexed: "; not kept", drawn: "; neither kept nor shared"}
	text := "| command | arguments | reply |\n|---|---|---|\n"
	for _, c := range commands {
		if values := c.reply == scalarReply || c.reply == mapReply; c.reply == statedReply || entries != values {
			text += fmt.Sprintf("| `%s` | `%s` | %s%s |\n", strings.ReplaceAll(c.names, " ", "`, `"), c.form, replyNames[c.reply], notes[c.order])
		}
	}
	return text
}
