package serve

// Front says through which front a request came.
type Front uint8

// The fronts.
const (
	RESP Front = iota
	HTTP
	Admin // the page that traces one request

	fronts int = iota
)

// String returns the label of the front in metrics and logs.
func (f Front) String() string { return [...]string{RESP: "resp", HTTP: "http", Admin: "admin"}[f] }

// Cut says why a front has ended a connection, or refused one.
type Cut uint8

// The reasons.
const (
	CutLimit     Cut = iota // there are too many connections, or descriptors
	CutIdle                 // it was idle for too long
	CutSlowRead             // the client takes too long to send a request
	CutSlowWrite            // the client takes too long to read its answers, or leaves too many unread
	CutProtocol             // the client breaks the protocol
	CutRevoked              // the token of the client was revoked
	CutUnsent               // all connections together have too many answers unread, and this client has taken nothing for longest
	CutFault                // rankd itself has panicked while it worked for the connection

	cuts int = iota
)

// String returns the label of the reason in metrics.
func (c Cut) String() string {
	return [...]string{
		CutLimit: "limit", CutIdle: "idle", CutSlowRead: "slow_read", CutSlowWrite: "slow_write", CutProtocol: "protocol", CutRevoked: "revoked",
		CutUnsent: "unsent", CutFault: "fault",
	}[c]
}

// ConnOpened counts a connection that a front has taken, and numbers it: see Query.Connection.
func (s *Service) ConnOpened(f Front) uint64 {
	s.metrics.connections[f].Inc()
	s.metrics.opened[f].Inc()
	return s.connections.Add(1)
}

// ConnClosed counts the end of a connection that ConnOpened has counted.
func (s *Service) ConnClosed(f Front) { s.metrics.connections[f].Dec() }

// ConnCut counts a connection that the front has ended by itself. If it was ever opened, ConnClosed counts its end,
// too.
func (s *Service) ConnCut(f Front, why Cut) { s.metrics.cut[f][why].Inc() }
