package peers

import (
	"errors"
	"fmt"
	"maps"
	"math/bits"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/redis/rueidis"
)

// Spec is a peer and its settings, as on a command line. Immutable once built.
//
//	rueidis[:conns=N][:delay=20us]
//	rueidis-cache[:ttl=1m][:bytes=N][:broadcast=true]
//	go-redis[:pool=N]
//
// Each takes procs=N too, GOMAXPROCS.
type Spec struct {
	Procs   int            // GOMAXPROCS; zero means what DefaultProcs says
	Rueidis *RueidisConfig // one of the two is set
	GoRedis *GoRedisConfig
}

// ErrSpec says that a text is not a peer's spec.
var ErrSpec = errors.New("not a peer's spec")

// ParseSpec reads a spec. The error wraps ErrSpec.
func ParseSpec(text string) (Spec, error) {
	name, rest, _ := strings.Cut(text, ":")
	var s Spec
	settings := map[string]func(string) error{"procs": number(&s.Procs)}
	switch name {
	case "rueidis":
		s.Rueidis = new(RueidisConfig)
		settings["conns"] = powerOfTwo(&s.Rueidis.Conns, 1<<rueidis.MaxPipelineMultiplex)
		settings["delay"] = duration(&s.Rueidis.FlushDelay)
	case "rueidis-cache":
		c := &RueidisConfig{Cache: true}
		s.Rueidis = c
		settings["ttl"], settings["bytes"], settings["broadcast"] = duration(&c.CacheTTL), number(&c.CacheBytes), boolean(&c.Broadcast)
	case "go-redis":
		s.GoRedis = new(GoRedisConfig)
		settings["pool"] = number(&s.GoRedis.Pool)
	default:
		return Spec{}, fmt.Errorf("%w: peer %q is neither rueidis, rueidis-cache nor go-redis", ErrSpec, name)
	}
	if rest == "" && strings.Contains(text, ":") {
		return Spec{}, fmt.Errorf("%w: nothing after the colon in %q", ErrSpec, text)
	}
	for rest != "" {
		var setting string
		setting, rest, _ = strings.Cut(rest, ":")
		key, value, _ := strings.Cut(setting, "=")
		set, ok := settings[key]
		if !ok {
			return Spec{}, fmt.Errorf("%w: %s has no setting %q, only %s", ErrSpec, name, key,
				strings.Join(slices.Sorted(maps.Keys(settings)), ", "))
		}
		if err := set(value); err != nil {
			return Spec{}, fmt.Errorf("%w: %s: %w", ErrSpec, setting, err)
		}
	}
	return s, nil
}

// Open opens the store that the spec describes, on the server or the cluster at addr, and returns the plan on it.
// A fanout other than 0 overrides that of the plan. The error of a plan that the peer does not have is ErrUnknownPlan.
func (s Spec) Open(addr, plan string, fanout int) (run Plan, store Store, err error) {
	if s.GoRedis != nil && plan != "concat_plan" {
		return nil, nil, fmt.Errorf("%w: %q; go-redis has concat_plan alone", ErrUnknownPlan, plan)
	}
	if s.Rueidis != nil {
		store, err = OpenRueidis(addr, *s.Rueidis)
	} else {
		store, err = OpenGoRedis(addr, *s.GoRedis)
	}
	if err != nil {
		return nil, nil, err
	}
	if run, err = NewRanker(store, fanout).Plan(plan); err != nil {
		store.Close()
		return nil, nil, err
	}
	return run, store, nil
}

// DefaultProcs returns the GOMAXPROCS with which the peer is fastest on that many cores. Redis
// keeps one core busy. rueidis hands each wave to a connection's two goroutines and back. That
// costs more across cores than a second core gains while Redis competes for it. go-redis is
// fastest with all cores.
func (s Spec) DefaultProcs(cores int) int {
	if s.Rueidis != nil {
		return max(cores-1, 1)
	}
	return cores
}

func number(to *int) func(string) error {
	return func(text string) error {
		n, err := strconv.ParseUint(text, 10, 31)
		*to = int(n)
		return err
	}
}

func powerOfTwo(to *int, most int) func(string) error {
	return func(text string) error {
		if err := number(to)(text); err != nil {
			return err
		}
		if bits.OnesCount(uint(*to)) != 1 || *to > most {
			return fmt.Errorf("want a power of two, at most %d", most)
		}
		return nil
	}
}

func boolean(to *bool) func(string) error {
	return func(text string) (err error) {
		*to, err = strconv.ParseBool(text)
		return err
	}
}

func duration(to *time.Duration) func(string) error {
	return func(text string) (err error) {
		*to, err = time.ParseDuration(text)
		return err
	}
}
