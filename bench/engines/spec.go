package engines

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/rankd/rankd"
	"github.com/rankd/rankd/registry"
	"github.com/rankd/rankd/resp"
	"github.com/rankd/rankd/trace"
)

// Kind is the model of execution, or Peer.
type Kind string

// The kinds. All but Peer are models of rankd.
const (
	Reactor    = Kind(rankd.Reactor)
	Pool       = Kind(rankd.Pool)
	Sequential = Kind(rankd.Sequential)
	Peer       = Kind("peer")
)

// clusterSetting begins the only setting of a peer that the peer does not read, and clusterMost bounds it.
const (
	clusterSetting = "cluster="
	clusterMost    = 100
)

// foreign begins the spec of an engine in another build of rankd.
const foreign = "binary"

// Spec names an engine and how it is set up. Immutable once built; comparable.
type Spec struct {
	Kind Kind
	Peer string // name of a peer with its settings, without "peer:"; "" for the other kinds
	// Binary is the program that runs the engine, another build of rankd. Empty means this
	// program. A peer has none.
	Binary string

	// Zero leaves the default of the engine.
	CPUThreads int // CPU workers
	IOThreads  int // I/O workers; pool only
	RedisPool  int // connections to Redis
	Trace      int // one request in so many is recorded, and the recording is dropped
	// Scheduling is the mode of the engine. Empty leaves the default.
	Scheduling rankd.SchedulingMode
	// CoalesceReads is "true" or "false" and says whether equal reads are sent once. Empty leaves it to
	// the benchmark; reactor only.
	CoalesceReads string
	MaxReplyBytes int
	// InlineThreshold is the predicted time, in nanoseconds, from which on a node leaves the loop.
	InlineThreshold int
	// Cache says how what was read is kept in memory. Empty leaves it to the registry; reactor only.
	Cache registry.CacheMode
	// Registry is a folder with other tables than those of the comparison. Empty leaves them.
	Registry string
	// NoInline keeps computing nodes off the loop.
	NoInline bool
	// NoBusyPoll has the loop sleep at once; reactor only.
	NoBusyPoll bool
	// Cluster is the number of masters of a Redis Cluster of the benchmark's own that the engine asks. Zero means one server.
	Cluster int
}

// Options returns o with the model and the sizes of the spec, which is not a peer.
func (s Spec) Options(o rankd.Options) rankd.Options {
	o.Model = rankd.Model(s.Kind)
	if s.CPUThreads > 0 {
		o.CPUThreads = s.CPUThreads
	}
	if s.IOThreads > 0 {
		o.IOThreads = s.IOThreads
	}
	if s.RedisPool > 0 {
		o.RedisConnections = s.RedisPool
	}
	if s.Trace > 0 {
		o.TraceSample, o.TraceSink = s.Trace, trace.SinkFunc(func(*trace.Recording) {})
	}
	if s.Scheduling != "" {
		o.Scheduling.Mode = s.Scheduling
	}
	if s.CoalesceReads == "false" {
		o.NoCoalesceReads = true
	}
	if s.InlineThreshold > 0 {
		o.Scheduling.InlineThreshold = time.Duration(s.InlineThreshold)
	}
	if s.MaxReplyBytes > 0 {
		o.MaxReplyBytes = s.MaxReplyBytes
	}
	o.Scheduling.NoInlineExecution = o.Scheduling.NoInlineExecution || s.NoInline
	if s.Cache != registry.CacheOff {
		o.Cache = s.Cache
	}
	if s.NoBusyPoll {
		o.BusyPoll = -1
	}
	if s.Registry != "" {
		o.Registry, o.RegistryName = os.DirFS(s.Registry), s.String()
	}
	return o
}

// Unshared returns the spec of an engine that sends every read that is asked for, unless s says
// whether it shares reads. Other builds and other kinds stay as they are.
func (s Spec) Unshared() Spec {
	if s.Kind == Reactor && s.Binary == "" && s.CoalesceReads == "" {
		s.CoalesceReads = "false"
	}
	return s
}

// Placement says in the words of a table where the engine's nodes compute: the scheduling mode of a reactor.
func (s Spec) Placement() string {
	switch {
	case s.Kind == Peer:
		return "by hand"
	case s.Kind == Pool:
		return "two pools"
	case s.Kind == Sequential:
		return "one at a time"
	case s.Binary != "" && s.Scheduling == "":
		return "its default"
	}
	mode := string(cmp.Or(s.Scheduling, rankd.Adaptive))
	if s.NoInline {
		mode += ", nothing inline"
	}
	return mode
}

// Reads says in the words of a table whether the engine shares the commands of equal reads, and whether it keeps what it read.
func (s Spec) Reads() string {
	if s.Cache != registry.CacheOff {
		kept := s
		kept.Cache = registry.CacheOff
		return kept.Reads() + ", kept: " + string(s.Cache)
	}
	switch {
	case s.Kind == Reactor && s.Binary != "" && s.CoalesceReads == "":
		return "its default"
	case s.Kind == Reactor && s.CoalesceReads != "false":
		return "shared"
	case s.Kind == Peer:
		// A peer that keeps what it read has a name that says so: "rueidis-cache:procs=2".
		if name, _, _ := strings.Cut(s.Peer, ":"); strings.HasSuffix(name, "-cache") {
			return "each sent, kept"
		}
	}
	return "each sent"
}

// Local returns the spec as the program that runs the engine reads it.
func (s Spec) Local() Spec {
	s.Binary, s.Cluster = "", 0 // the address of the server says so
	return s
}

// String returns the spec in the form that ParseSpec reads.
func (s Spec) String() string {
	if s.Kind == Peer {
		if s.Cluster > 0 {
			return fmt.Sprintf("%s:%s:%s%d", Peer, s.Peer, clusterSetting, s.Cluster)
		}
		return string(Peer) + ":" + s.Peer
	}
	if s.Binary != "" {
		path := s.Binary
		s.Binary = ""
		return foreign + ":" + path + ":" + s.String()
	}
	var options []string
	for _, o := range s.options() {
		if *o.value > 0 {
			options = append(options, fmt.Sprintf("%s=%d", o.name, *o.value))
		}
	}
	for _, w := range s.words() {
		if w.given != "" {
			options = append(options, w.name+"="+w.given)
		}
	}
	if options == nil {
		return string(s.Kind)
	}
	return string(s.Kind) + ":" + strings.Join(options, ",")
}

type option struct {
	name  string
	value *int
	most  int
}

// options returns the sizes that may follow a kind, in the order in which it is printed.
func (s *Spec) options() []option {
	options := []option{{"cpu_threads", &s.CPUThreads, 1 << 10}, {"redis_pool", &s.RedisPool, 1 << 12}, {"trace", &s.Trace, 1 << 30},
		{"max_reply_bytes", &s.MaxReplyBytes, resp.MaxReplyBytesLimit}, {"inline_threshold_ns", &s.InlineThreshold, 1 << 30}, {"cluster", &s.Cluster, clusterMost}}
	if s.Kind == Pool {
		options = append(options, option{"io_threads", &s.IOThreads, 1 << 14})
	}
	return options
}

// A word is an option whose value is not a number.
type word struct {
	name  string
	given string   // its value; empty: none
	words []string // that it may be; nil: any text
	may   string   // the same in words
	set   func(string)
}

// words returns the options of the kind that are not numbers, in the order in which they are printed.
func (s *Spec) words() []word {
	off := func(name string, is *bool) word {
		w := word{name: name, words: []string{"false"}, may: "false, or left out", set: func(string) { *is = true }}
		if *is {
			w.given = "false"
		}
		return w
	}
	words := []word{
		{"scheduling", string(s.Scheduling), []string{string(rankd.Adaptive), string(rankd.OffloadAll), string(rankd.InlineAll)},
			"adaptive, offload_all or inline_all", func(v string) { s.Scheduling = rankd.SchedulingMode(v) }},
		off("inline", &s.NoInline),
		{"registry", s.Registry, nil, "a folder", func(v string) { s.Registry = v }},
	}
	if s.Kind == Reactor {
		words = append(words,
			off("busy_poll", &s.NoBusyPoll),
			word{"cache", string(s.Cache), []string{string(registry.CacheTTL), string(registry.CacheBroadcast), string(registry.CacheTrack)},
				"ttl, broadcast or track, or left out", func(v string) { s.Cache = registry.CacheMode(v) }},
			word{"coalesce_reads", s.CoalesceReads, []string{"true", "false"}, "true or false", func(v string) { s.CoalesceReads = v }})
	}
	return words
}

// ParseSpec reads one engine: a kind, optionally followed by ":" and options
// ("pool:io_threads=64,redis_pool=64"), or "peer:" and a name, which settings of the peer may follow. Before a kind may stand
// "binary:", the path of another build of rankd, and ":"; without a kind it runs its reactor.
func ParseSpec(text string) (Spec, error) {
	if rest, found := strings.CutPrefix(text, foreign+":"); found {
		path, local, more := strings.Cut(rest, ":")
		if path == "" {
			return Spec{}, fmt.Errorf("engine %q: another build is written binary:<path> or binary:<path>:<engine>", text)
		}
		if !more {
			return Spec{Kind: Reactor, Binary: path}, nil
		}
		s, err := ParseSpec(local)
		if err == nil && (s.Kind == Peer || s.Binary != "") {
			err = errors.New("another build runs an engine of its own")
		}
		if err != nil {
			return Spec{}, fmt.Errorf("engine %q: %w", text, err)
		}
		s.Binary = path
		return s, nil
	}
	kind, rest, more := strings.Cut(text, ":")
	s := Spec{Kind: Kind(kind)}
	switch s.Kind {
	case Reactor, Pool, Sequential:
	case Peer:
		if !isPeer(rest) {
			return Spec{}, fmt.Errorf("engine %q: a peer is written peer:<name> or peer:<name>:<key>=<value>…", text)
		}
		if before, masters, found := strings.Cut(rest, ":"+clusterSetting); found {
			masters, after, more := strings.Cut(masters, ":")
			if err := s.set(clusterSetting + masters); err != nil {
				return Spec{}, fmt.Errorf("engine %q: %w", text, err)
			}
			if rest = before; more {
				rest += ":" + after
			}
		}
		s.Peer = rest
		return s, nil
	default:
		return Spec{}, fmt.Errorf("engine %q: the kind is reactor, pool, sequential, peer or binary, not %q", text, kind)
	}
	if !more {
		return s, nil
	}
	for field := range strings.SplitSeq(rest, ",") {
		if err := s.set(field); err != nil {
			return Spec{}, fmt.Errorf("engine %q: %w", text, err)
		}
	}
	return s, nil
}

// isPeer reports whether text is the name of a peer, with settings that only the peer knows.
func isPeer(text string) bool {
	name, rest, more := strings.Cut(text, ":")
	if name == "" || strings.ContainsAny(text, ", \t") || strings.Contains(name, "=") {
		return false
	}
	for more {
		var setting string
		setting, rest, more = strings.Cut(rest, ":")
		if key, value, ok := strings.Cut(setting, "="); !ok || key == "" || value == "" {
			return false
		}
	}
	return true
}

// set reads one name=value.
func (s *Spec) set(field string) error {
	name, text, _ := strings.Cut(field, "=")
	var names []string
	for _, o := range s.options() {
		names = append(names, o.name)
		if o.name != name {
			continue
		}
		n, err := strconv.Atoi(text)
		if err != nil || n < 1 || n > o.most {
			return fmt.Errorf("%s is a number from 1 to %d, not %q", name, o.most, text)
		}
		if *o.value != 0 {
			return fmt.Errorf("%s is given twice", name)
		}
		*o.value = n
		return nil
	}
	for _, w := range s.words() {
		names = append(names, w.name)
		switch {
		case w.name != name:
			continue
		case text == "" || w.words != nil && !slices.Contains(w.words, text):
			return fmt.Errorf("%s is %s, not %q", name, w.may, text)
		case w.given != "":
			return fmt.Errorf("%s is given twice", name)
		}
		w.set(text)
		return nil
	}
	return fmt.Errorf("no option %q; there are %s", name, strings.Join(names, ", "))
}

// ParseSpecs reads a list of engines. A comma separates engines, and also the options of
// one. The text after a comma is an option if it has a "=" and no ":" before it.
// The same engine twice is an error.
func ParseSpecs(text string) ([]Spec, error) {
	var texts []string
	for field := range strings.SplitSeq(text, ",") {
		field = strings.TrimSpace(field)
		name, _, isOption := strings.Cut(field, "=")
		if isOption && !strings.Contains(name, ":") && len(texts) > 0 {
			texts[len(texts)-1] += "," + field
			continue
		}
		texts = append(texts, field)
	}
	var specs []Spec
	var problems []error
	seen := make(map[Spec]bool)
	for _, t := range texts {
		s, err := ParseSpec(t)
		switch {
		case err != nil:
			problems = append(problems, err)
		case seen[s]:
			problems = append(problems, fmt.Errorf("engine %q is listed twice", t))
		default:
			seen[s] = true
			specs = append(specs, s)
		}
	}
	if err := errors.Join(problems...); err != nil {
		return nil, err
	}
	return specs, nil
}
