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
//	rueidis[:waves=fused|groups][:conns=N][:delay=20us][:threshold=N][:always=true][:ring=10][:buffer=65536]
//	rueidis-cache[:waves=…][:procs=N][:ttl=1m][:bytes=N][:broadcast=true][:always=true][:ring=10][:buffer=65536]
//	go-redis[:waves=…][:mode=adaptive|pipeline|fullduplex|auto][:pool=N][:batches=N][:threshold=N][:batch=N]
//	        [:delay=…][:buffer=…]
//
// Each takes procs=N too.
type Spec struct {
	Waves   Waves
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
	settings := map[string]func(string) error{
		"waves": oneOf(&s.Waves, "fused", "groups"),
		"procs": number(&s.Procs),
	}
	switch name {
	case "rueidis", "rueidis-cache":
		c := &RueidisConfig{Cache: name == "rueidis-cache"}
		s.Rueidis = c
		settings["ring"], settings["buffer"] = number(&c.RingScale), number(&c.BufferBytes)
		settings["always"] = boolean(&c.AlwaysPipelining)
		if c.Cache {
			settings["ttl"], settings["bytes"], settings["broadcast"] = duration(&c.CacheTTL), number(&c.CacheBytes), boolean(&c.Broadcast)
			break
		}
		settings["conns"] = powerOfTwo(&c.Conns, 1<<rueidis.MaxPipelineMultiplex)
		settings["delay"], settings["threshold"] = duration(&c.FlushDelay), number(&c.Threshold)
	case "go-redis":
		c := new(GoRedisConfig)
		s.GoRedis = c
		settings["mode"] = oneOf(&c.Mode, "adaptive", "pipeline", "fullduplex", "auto")
		settings["pool"], settings["batches"], settings["threshold"] = number(&c.Pool), number(&c.Batches), number(&c.Threshold)
		settings["batch"], settings["buffer"] = number(&c.BatchMax), number(&c.BufferBytes)
		settings["delay"] = duration(&c.FlushDelay)
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

// Open opens the store that the spec describes, on the server or the cluster at addr.
func (s Spec) Open(addr string) (Store, error) {
	if s.Rueidis != nil {
		return OpenRueidis(addr, *s.Rueidis)
	}
	return OpenGoRedis(addr, *s.GoRedis)
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

// oneOf sets an enumeration by the name of its value.
func oneOf[T ~uint8](to *T, names ...string) func(string) error {
	return func(text string) error {
		i := slices.Index(names, text)
		if i < 0 {
			return fmt.Errorf("want one of %s", strings.Join(names, ", "))
		}
		*to = T(i)
		return nil
	}
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
