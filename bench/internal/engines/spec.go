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
	o.CPUThreads = cmp.Or(s.CPUThreads, o.CPUThreads)
	o.IOThreads = cmp.Or(s.IOThreads, o.IOThreads)
	o.RedisConnections = cmp.Or(s.RedisPool, o.RedisConnections)
	o.MaxReplyBytes = cmp.Or(s.MaxReplyBytes, o.MaxReplyBytes)
	o.Cache = cmp.Or(s.Cache, o.Cache)
	o.Scheduling.Mode = cmp.Or(s.Scheduling, o.Scheduling.Mode)
	o.Scheduling.InlineThreshold = cmp.Or(time.Duration(s.InlineThreshold), o.Scheduling.InlineThreshold)
	o.Scheduling.NoInlineExecution = o.Scheduling.NoInlineExecution || s.NoInline
	o.NoCoalesceReads = o.NoCoalesceReads || s.CoalesceReads == "false"
	if s.Trace > 0 {
		o.TraceSample, o.TraceSink = s.Trace, trace.SinkFunc(func(*trace.Recording) {})
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
		if o.given != "" {
			options = append(options, o.name+"="+o.given)
		}
	}
	if options == nil {
		return string(s.Kind)
	}
	return string(s.Kind) + ":" + strings.Join(options, ",")
}

// An option may follow a kind.
type option struct {
	name  string
	given string // its value; empty: none
	may   string // what the value may be
	set   func(text string) (ok bool)
}

// size is an option whose value is a number.
func size(name string, to *int, most int) option {
	o := option{name: name, may: fmt.Sprintf("a number from 1 to %d", most)}
	if *to > 0 {
		o.given = strconv.Itoa(*to)
	}
	o.set = func(text string) bool {
		n, err := strconv.Atoi(text)
		*to = n
		return err == nil && n >= 1 && n <= most
	}
	return o
}

// word is an option that is one of the words, or any text without them.
func word[T ~string](name, may string, to *T, words ...T) option {
	return option{name: name, given: string(*to), may: may, set: func(text string) bool {
		*to = T(text)
		return text != "" && (words == nil || slices.Contains(words, *to))
	}}
}

// off is an option that turns something off.
func off(name string, to *bool) option {
	o := option{name: name, may: "false, or left out", set: func(text string) bool { *to = true; return text == "false" }}
	if *to {
		o.given = "false"
	}
	return o
}

// options returns the options of the kind, in the order in which they are printed.
func (s *Spec) options() []option {
	options := []option{
		size("cpu_threads", &s.CPUThreads, 1<<10), size("redis_pool", &s.RedisPool, 1<<12), size("trace", &s.Trace, 1<<30),
		size("max_reply_bytes", &s.MaxReplyBytes, resp.MaxReplyBytesLimit), size("inline_threshold_ns", &s.InlineThreshold, 1<<30), size("cluster", &s.Cluster, clusterMost),
	}
	if s.Kind == Pool {
		options = append(options, size("io_threads", &s.IOThreads, 1<<14))
	}
	options = append(options,
		word("scheduling", "adaptive, offload_all or inline_all", &s.Scheduling, rankd.Adaptive, rankd.OffloadAll, rankd.InlineAll),
		off("inline", &s.NoInline), word("registry", "a folder", &s.Registry))
	if s.Kind == Reactor {
		options = append(options, off("busy_poll", &s.NoBusyPoll),
			word("cache", "ttl, broadcast or track, or left out", &s.Cache, registry.CacheTTL, registry.CacheBroadcast, registry.CacheTrack),
			word("coalesce_reads", "true or false", &s.CoalesceReads, "true", "false"))
	}
	return options
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
		switch {
		case o.name != name:
			continue
		case !o.set(text):
			return fmt.Errorf("%s is %s, not %q", name, o.may, text)
		case o.given != "":
			return fmt.Errorf("%s is given twice", name)
		}
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
