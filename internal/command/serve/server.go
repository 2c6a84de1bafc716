package serve

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	stdlog "log"
	"log/slog"
	"net"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/rankd/rankd"
	"github.com/rankd/rankd/internal/cmdline"
	"github.com/rankd/rankd/internal/request"
	"github.com/rankd/rankd/internal/version"
	"github.com/rankd/rankd/serve"
	"github.com/rankd/rankd/serve/access"
	"github.com/rankd/rankd/serve/admin"
	"github.com/rankd/rankd/serve/httpfront"
	"github.com/rankd/rankd/serve/respfront"
)

// front is a listener for requests, over HTTP or RESP. Any goroutine.
type front interface {
	// Serve takes connections until Drain closes the listener; it then returns nil.
	Serve(net.Listener) error
	// Drain takes no more connections, and returns when the last one is closed or ctx ends.
	Drain(ctx context.Context) error
}

// entrance is a front and where it listens. Immutable once it listens.
type entrance struct {
	name     string
	address  address
	front    front
	tls      *tls.Config // nil: none
	listener net.Listener
}

// server is the parts of a running server. One goroutine.
type server struct {
	log          *slog.Logger
	libraries    *libraryLog // what libraries log themselves
	engine       *rankd.Engine
	service      *serve.Service
	store        *access.Store
	certificates *access.Certificates // nil: no TLS
	outputs      map[string]admin.Output

	entrances []entrance
	http      *httpfront.Front // nil: off
	resp      *respfront.Front // nil: off
	admin     *http.Server     // nil: off
	operators net.Listener     // of admin
	operator  *access.Caller   // on whose behalf admin asks

	ready atomic.Bool // read by /readyz, on any goroutine
}

// openEngine opens the engine.
func (p *Program) openEngine(o *options, log *slog.Logger, redis *cmdline.EmbeddedRedis, traces *cmdline.TraceFile, logs *rankd.Options) (*rankd.Engine, error) {
	options, err := o.engineOptions(redis, traces.Sink())
	if err != nil {
		return nil, err
	}
	options.Logger, options.Served, options.Record = log, logs.Served, logs.Record
	e, err := rankd.Open(options)
	if err != nil {
		return nil, err
	}
	if err := o.CheckOffer(e); err != nil {
		return nil, errors.Join(err, e.Close())
	}
	redis.Announce(func(addr string, users int) {
		log.Info("using an embedded Redis with demo data; --redis host:port for your own", "address", addr, "users", users)
	})
	return e, nil
}

// build makes the fronts that the flags ask for. It opens nothing but the service.
func (s *server) build(o *options) (err error) {
	s.operator, err = access.NewCaller(access.Rules{
		Name: "admin", Plans: []string{"*"}, Overrides: []string{"*"},
		Grants: []request.Grant{request.GrantScheduling, request.GrantTrace, request.GrantExplain, request.GrantNow, request.GrantTraffic},
	})
	if err != nil {
		return err
	}
	metrics := prometheus.NewRegistry()
	service := o.serviceOptions()
	service.Logger, service.Registerer = s.log, metrics
	if s.service, err = serve.New(s.engine, service); err != nil {
		return err
	}
	if o.httpAddress.on() {
		hosts, err := o.hosts(o.httpAddress, o.tokens != "")
		if err != nil {
			return err
		}
		front := o.httpOptions()
		front.Hosts = hosts
		s.http, err = httpfront.New(s.service, s.store, s.engine.Intake().Reactor(), front)
		if err != nil {
			return err
		}
		s.entrances = append(s.entrances, entrance{name: "http", address: o.httpAddress, front: s.http, tls: s.secured("http/1.1")})
	}
	if o.respAddress.on() {
		s.resp, err = respfront.New(s.service, s.store, s.engine.Intake().Reactor(), o.respOptions())
		if err != nil {
			return err
		}
		s.entrances = append(s.entrances, entrance{name: "resp", address: o.respAddress, front: s.resp, tls: s.secured()})
	}
	if !o.adminAddress.on() {
		return nil
	}
	hosts, err := o.hosts(o.adminAddress, false)
	if err != nil {
		return err
	}
	s.admin = &http.Server{
		Handler: admin.Handler(admin.Options{
			Service: s.service, Registry: metrics, Ready: s.readiness, Caller: s.operator, Outputs: s.outputs, Hosts: hosts,
			Reload: func(ctx context.Context, back bool) (rankd.Generation, error) {
				return s.reloadPlans(ctx, "POST /reload", back)
			},
		}),
		ReadHeaderTimeout: adminHeaderTimeout, IdleTimeout: adminIdleTimeout, MaxHeaderBytes: adminHeaderBytes,
		ErrorLog: stdlog.New(s.libraries, "", 0),
	}
	return nil
}

// secured returns how a front speaks TLS, with these protocols over it, or nil.
func (s *server) secured(protocols ...string) *tls.Config {
	if s.certificates == nil {
		return nil
	}
	config := s.certificates.Config()
	config.NextProtos = protocols
	return config
}

// The limits of the port for operators. Answers have no bound in time, because a CPU profile takes as long as it is asked for.
const (
	adminHeaderTimeout = 5 * time.Second
	adminIdleTimeout   = 2 * time.Minute
	adminHeaderBytes   = 16 << 10
)

// errNotReady is what /readyz says before the fronts listen and once the server drains.
var errNotReady = errors.New("starting or draining")

// readiness says why load balancers should not send requests. Any goroutine.
func (s *server) readiness() error {
	if !s.ready.Load() {
		return errNotReady
	}
	return s.engine.Ready()
}

// listen opens all ports. The caller closes what is open after an error, too.
func (s *server) listen(o *options) error {
	for i := range s.entrances {
		e := &s.entrances[i]
		l, err := listenTCP(e.address.String(), o.reusePort)
		if err != nil {
			return cannotListen(e.address.flag, err)
		}
		e.listener = l
		s.log.Info("listening", "front", e.name, "address", l.Addr().String(), "tls", e.tls != nil)
		if o.tokens != "" && e.tls == nil && !e.address.local() {
			s.log.Warn("tokens travel in clear, since there is no TLS", "front", e.name)
		}
	}
	if s.admin == nil {
		return nil
	}
	l, err := net.Listen("tcp", o.adminAddress.String())
	if err != nil {
		return cannotListen(o.adminAddress.flag, err)
	}
	s.operators = l
	s.log.Info("listening", "front", "admin", "address", l.Addr().String(), "tls", false)
	return nil
}

func cannotListen(flag string, err error) error {
	return &cmdline.RuntimeError{Err: fmt.Errorf("--%s: %w", flag, err)}
}

// checkCertificate warns of a certificate that clients refuse.
func (s *server) checkCertificate() {
	if end := s.certificates.Expires(); !time.Now().Before(end) {
		s.log.Warn("the certificate has expired, so that clients refuse it", "expired", end)
	}
}

// started logs that the server is ready, and for whom.
func (s *server) started() {
	v := version.Read()
	attributes := []any{"version", v.String(), "plans", len(s.service.Plans(s.operator)), "digest", s.engine.Generation().Digest}
	if s.store.Anonymous() == nil {
		attributes = append(attributes, "tokens", len(s.store.Names()))
	}
	if s.certificates != nil {
		attributes = append(attributes, "certificate_expires", s.certificates.Expires())
		s.checkCertificate()
	}
	var endpoints []any
	for _, e := range s.engine.Registry().Endpoints() {
		endpoints = append(endpoints, e.Name, e.ShownAddr())
	}
	s.log.Info("ready", append(attributes, slog.Group("endpoints", endpoints...))...)
}
