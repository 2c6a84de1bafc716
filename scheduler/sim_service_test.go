package scheduler

import (
	"errors"
	"strconv"
	"time"

	"github.com/rankd/rankd/internal/remote"
	"github.com/rankd/rankd/registry"
)

// simService is the service behind the http endpoint of a simulation. It is the Carrier of the
// real client of package remote, which asks it.
type simService struct {
	w        *simWorld
	inFlight int
	limit    int // of the client
	carried  int
	gaveUp   int // requests that were cancelled on their way
	faults   int
}

// buildService makes the service and its client.
func (w *simWorld) buildService(ep *registry.Endpoint) {
	c := &w.cfg
	o := remote.Options{URL: ep.URL(), Connections: 1 + w.rng.IntN(4), MaxInflight: 1 + w.rng.IntN(4), RequestTimeout: 20 * time.Second}
	if c.service.tight {
		o.MaxWaiting = 1 + w.rng.IntN(3)
		o.RequestTimeout = w.between(2*time.Millisecond, 20*time.Millisecond)
	}
	w.service = &simService{w: w, limit: min(o.Connections, o.MaxInflight)}
	w.remotes = make([]Remote, len(w.lab.reg.Endpoints()))
	w.remotes[ep.Index] = remote.NewClient(w.sim.Loop, w.service, o)
}

// simScore is the service's answer to a request: the number after the request's.
func simScore(request []byte) []byte {
	n, _ := strconv.ParseUint(string(request), 10, 64)
	return strconv.AppendUint(nil, n+1, 10)
}

// Carry implements remote.Carrier. It writes the request at once or later, and answers it later
// still.
func (s *simService) Carry(x *remote.Exchange, back func(int, error)) func(error) {
	w := s.w
	s.carried++
	s.inFlight++
	w.check(s.inFlight <= s.limit, "%d requests are on their way to the service, at most %d may be", s.inFlight, s.limit)
	w.check(!w.closing || !w.drained(), "a request leaves after the end of the drain")
	ended := false
	end := func(received int, err error) {
		if ended {
			return
		}
		ended = true
		w.check(w.sim.Loop.Post(func() {
			s.inFlight--
			back(received, err)
		}), "a request came back after the end of the loop")
	}
	failure := func(kind error) error {
		s.faults++
		return &remote.OpError{Addr: "model:80", Kind: kind, Cause: errors.New("injected")}
	}
	var body []byte
	answer := func() {
		switch {
		case ended:
		case !w.hits(w.cfg.service.fault):
			score := simScore(body)
			end(len(score), x.Answer(score))
		default:
			switch w.rng.IntN(5) {
			case 0:
				end(0, failure(remote.ErrConnect))
			case 1:
				end(0, failure(remote.ErrConnectionLost))
			case 2:
				end(0, failure(remote.ErrStatus))
			case 3:
				_ = x.Answer([]byte("garbage")) // a Service classifies its error as ErrProtocol
				end(0, failure(remote.ErrProtocol))
			default: // It hangs.
				s.faults++
				w.sim.After(time.Minute, func() { end(0, failure(remote.ErrConnectionLost)) })
			}
		}
	}
	w.sim.After(w.between(0, w.cfg.netMax), func() {
		if ended {
			return
		}
		var err error
		if body, err = x.Request(nil); err != nil {
			end(0, err)
			return
		}
		w.sim.After(w.cfg.latency(w)+w.between(0, w.cfg.netMax), answer)
	})
	return func(cause error) {
		if !ended && cause != nil {
			s.gaveUp++
			end(0, cause)
		}
	}
}
