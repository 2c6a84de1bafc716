package registry

import (
	"errors"
	"net"
	"net/url"
	"path"
	"strconv"
	"strings"
)

// defaultPort is the default port of a redis:// URL.
const defaultPort = 6379

// Server is a user's address of a Redis server: where it is, who logs in, and which database. Immutable once built;
// any goroutine.
type Server struct {
	Host   string // empty for a unix socket
	Port   int    // 0 for a unix socket
	Socket string // the path of a unix socket; empty for TCP
	// Cluster says that the server is a node of a Redis Cluster. Others has further nodes, as "host:port" separated
	// by commas.
	Cluster bool
	Others  string
	TLS     *TLS // nil: plain
	// Master is the name under which sentinels know the server. Host, Port and Others are then those of sentinels.
	// Empty: there are no sentinels.
	Master   string
	Sentinel Sentinel
	Replicas Replicas

	Username string // empty means the default user
	Password Secret
	// Database is the number in SELECT. HasDatabase tells a URL with database 0 from one without a database.
	Database    int
	HasDatabase bool
}

// The errors of ParseServer quote nothing of the text: a password may be anywhere in a text that
// does not parse.
var (
	errScheme   = errors.New("the scheme must be redis://, redis+cluster://, redis+sentinel:// or unix://, with rediss for TLS")
	errURL      = errors.New("the URL is malformed; special characters in a password are written as %XX, such as %40 for @ and %2F for /")
	errHostArg  = errors.New("host or port is missing; a URL begins with redis://, redis+cluster://, redis+sentinel:// or unix://, with rediss for TLS")
	errPort     = errors.New("host is missing, or port is not a number from 1 to 65535")
	errHost     = errors.New("host must be a host name or an IP address")
	errDB       = errors.New("the database must be a number from 0 to 65536, once: after the host or as db=")
	errSocket   = errors.New("a unix socket needs an absolute path without %, ? and #: unix:///path/to/redis.sock")
	errQuery    = errors.New("after ? there are db, username, password, password_file and password_env, tls_* with rediss://, read_from and replica_max_lag_bytes with redis+cluster://, and sentinel_* with redis+sentinel://, each at most once")
	errTLSPlain = errors.New("tls_ca, tls_cert, tls_key and tls_server_name need rediss://")
	errSeeds    = errors.New("redis+cluster:// and redis+sentinel:// name at most 16 nodes, as host:port with commas between them")
	errCluster  = errors.New("a Redis Cluster has only database 0")
	errOne      = errors.New("the address is that of a Redis Cluster or of sentinels, and one server is needed here")
	errMaster   = errors.New("redis+sentinel:// names the master as /name behind the sentinels, in letters, digits, dots, - and _")
	errTwice    = errors.New("the user or the password is given twice")
	errUser     = errors.New("a username needs a password: user:password@, password_file= or password_env=")
)

// ParseServer reads the address of a server, in one of the forms
//
//	host:port
//	redis://user:password@host:port/database
//	redis+cluster://user:password@host:port,host:port
//	redis+sentinel://user:password@host:port,host:port/master/database
//	rediss://host:port?tls_ca=FILE   rediss+cluster://, rediss+sentinel://: through TLS
//	unix://user:password@/path/to/redis.sock?db=1
//
// Everything except the host or the path, and the master, may be missing; the port is then 6379, or 26379 for
// sentinels. A query may hold db, username, password, password_file and password_env, and settings for TLS, replicas and sentinels. The forms are those of go-redis
// and redis-py, except the last two, which keep the password out of command lines. Errors quote nothing of text.
func ParseServer(text string) (Server, error) {
	if !strings.Contains(text, "://") && !strings.HasPrefix(text, "unix:") {
		return parseHostPort(text)
	}
	scheme, _, _ := strings.Cut(text, ":")
	var s Server
	port := defaultPort
	scheme = strings.ToLower(scheme)
	if plain, secure := strings.CutPrefix(scheme, "rediss"); secure {
		s.TLS, scheme = new(TLS), "redis"+plain
	}
	switch scheme {
	case "redis", "unix":
	case clusterScheme, sentinelScheme:
		if s.Cluster = strings.EqualFold(scheme, clusterScheme); !s.Cluster {
			port = sentinelPort
		}
		var err error
		if text, s.Others, err = cutOthers(text, port); err != nil {
			return Server{}, err
		}
	default:
		return Server{}, errScheme
	}
	u, err := url.Parse(text)
	if err != nil || u.Opaque != "" || u.Fragment != "" || strings.HasSuffix(text, "#") {
		return Server{}, errURL
	}
	switch scheme {
	case "unix":
		err = s.setSocket(u)
	case sentinelScheme:
		if err = s.setMaster(u); err == nil {
			err = s.setHost(u, port)
		}
	default:
		err = s.setHost(u, port)
	}
	if err == nil {
		err = s.setLogin(u)
	}
	if err == nil && s.Cluster && s.Database != 0 {
		err = errCluster
	}
	if err != nil {
		return Server{}, err
	}
	return s, nil
}

// ParseOneServer is ParseServer for callers that need a single server: the address of a Redis Cluster or of sentinels
// is an error.
func ParseOneServer(text string) (Server, error) {
	s, err := ParseServer(text)
	if err == nil && (s.Cluster || s.Master != "") {
		return Server{}, errOne
	}
	return s, err
}

// clusterScheme begins the URL of a Redis Cluster, and sentinelScheme that of a master that sentinels know.
const (
	clusterScheme  = "redis+cluster"
	sentinelScheme = "redis+sentinel"
)

// sentinelPort is the default port of a sentinel.
const sentinelPort = 26379

// othersMax bounds the further nodes that a URL names.
const othersMax = 15

// cutOthers takes all nodes except the first out of a URL redis+cluster://user:password@h1:p,h2:p/0?query, so that
// net/url can read it. port replaces a missing port.
func cutOthers(text string, port int) (rest, others string, err error) {
	const separator = "://"
	begin := strings.Index(text, separator)
	if begin < 0 {
		return "", "", errURL
	}
	begin += len(separator)
	end := begin + len(text[begin:])
	if i := strings.IndexAny(text[begin:], "/?#"); i >= 0 {
		end = begin + i
	}
	begin += strings.LastIndexByte(text[begin:end], '@') + 1
	hosts := strings.Split(text[begin:end], ",")
	if len(hosts)-1 > othersMax {
		return "", "", errSeeds
	}
	list := make([]string, 0, len(hosts)-1)
	for _, host := range hosts[1:] {
		u := url.URL{Host: host}
		if u.Port() == "" {
			host = net.JoinHostPort(u.Hostname(), strconv.Itoa(port))
		}
		node, err := parseHostPort(host)
		if err != nil {
			return "", "", errSeeds
		}
		list = append(list, addr(node.Host, node.Port, ""))
	}
	return text[:begin] + hosts[0] + text[end:], strings.Join(list, ","), nil
}

func parseHostPort(text string) (Server, error) {
	host, port, err := net.SplitHostPort(text)
	if err != nil {
		return Server{}, errHostArg
	}
	n, err := strconv.Atoi(port)
	if host == "" || err != nil || n < 1 || n > 65535 {
		return Server{}, errPort
	}
	if !ValidHost(host) {
		return Server{}, errHost
	}
	return Server{Host: host, Port: n}, nil
}

// setMaster takes the name of the master out of the path of a redis+sentinel:// URL.
func (s *Server) setMaster(u *url.URL) error {
	s.Master, u.Path, _ = strings.Cut(strings.TrimPrefix(u.Path, "/"), "/")
	if !validMaster(s.Master) {
		return errMaster
	}
	return nil
}

// validMaster reports whether sentinels accept the name for a master.
func validMaster(name string) bool {
	return name != "" && !strings.ContainsFunc(name, func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && !strings.ContainsRune("._-", r)
	})
}

// setHost reads host, port and database of a redis:// URL. missing replaces a missing port.
func (s *Server) setHost(u *url.URL, missing int) error {
	port := u.Port()
	if port == "" {
		if strings.HasSuffix(u.Host, ":") {
			return errPort
		}
		port = strconv.Itoa(missing)
	}
	there, err := parseHostPort(net.JoinHostPort(u.Hostname(), port))
	if err != nil {
		return err
	}
	s.Host, s.Port = there.Host, there.Port
	database := strings.TrimSuffix(strings.TrimPrefix(u.Path, "/"), "/")
	if database == "" {
		return nil
	}
	return s.setDatabase(database)
}

// setSocket reads the path of a unix:// URL.
func (s *Server) setSocket(u *url.URL) error {
	if u.Host != "" || !path.IsAbs(u.Path) || strings.HasSuffix(u.Path, "/") || !validSocket(u.Path) {
		return errSocket
	}
	s.Socket = "/" + strings.TrimLeft(u.Path, "/") // unix://h would have a host
	return nil
}

// socketMaxBytes is the longest path of a unix socket that every system takes.
const socketMaxBytes = 103

// validSocket reports whether a socket can have the path. Its address will be parsed as a URL again, so it must not
// have characters with a meaning in URLs.
func validSocket(path string) bool {
	return path != "" && path[0] == '/' && len(path) <= socketMaxBytes && !strings.ContainsFunc(path, func(r rune) bool { return r < ' ' || r == 0x7f || strings.ContainsRune("%?#", r) })
}

// setDatabase reads the number of the database, which must not be set yet.
func (s *Server) setDatabase(text string) error {
	n, err := strconv.ParseUint(text, 10, 31)
	if err != nil || n > databaseLimit || s.HasDatabase {
		return errDB
	}
	s.Database, s.HasDatabase = int(n), true
	return nil
}

// setLogin reads user and password, and the query.
func (s *Server) setLogin(u *url.URL) error {
	password, _ := u.User.Password()
	s.Username, s.Password = u.User.Username(), NewSecret(password)
	query, err := url.ParseQuery(u.RawQuery)
	if err != nil {
		return errURL
	}
	for name, values := range query {
		if len(values) != 1 || values[0] == "" {
			return errQuery
		}
		value := values[0]
		switch name {
		case "db":
			if err := s.setDatabase(value); err != nil {
				return err
			}
		case "username":
			if s.Username != "" {
				return errTwice
			}
			s.Username = value
		case "password", "password_file", "password_env":
			if !s.Password.IsZero() {
				return errTwice
			}
			s.Password = map[string]Secret{
				"password": NewSecret(value), "password_file": {File: value}, "password_env": {Env: value},
			}[name]
		case "read_from", "replica_max_lag_bytes":
			if !s.Cluster {
				return errReplicas
			}
			if err := s.Replicas.set(name, value); err != nil {
				return err
			}
		case "sentinel_username", "sentinel_password", "sentinel_password_file", "sentinel_password_env", "sentinel_tls":
			if s.Master == "" {
				return errSentinel
			}
			if err := s.Sentinel.set(name, value, s.TLS != nil); err != nil {
				return err
			}
		case "tls_ca", "tls_cert", "tls_key", "tls_server_name":
			if s.TLS == nil {
				return errTLSPlain
			}
			*map[string]*string{"tls_ca": &s.TLS.CA, "tls_cert": &s.TLS.Cert, "tls_key": &s.TLS.Key, "tls_server_name": &s.TLS.ServerName}[name] = value
		default:
			return errQuery
		}
	}
	if err := s.TLS.check(); err != nil {
		return err
	}
	if err := s.Replicas.check(); err != nil {
		return err
	}
	if err := s.Sentinel.check(); err != nil {
		return err
	}
	if s.Username != "" && s.Password.IsZero() {
		return errUser
	}
	return nil
}

// Addr returns the address that clients dial: "host:port", or "unix:/path" for a socket. For a Redis Cluster it is a
// list, "host:port,host:port".
func (s Server) Addr() string { return withOthers(addr(s.Host, s.Port, s.Socket), s.Others) }

// withOthers returns a list of the first node of a Redis Cluster and further ones.
func withOthers(first, others string) string {
	if others == "" {
		return first
	}
	return first + "," + others
}

// Plain reports whether the server has a host and a port and nothing else.
func (s Server) Plain() bool { return s == Server{Host: s.Host, Port: s.Port} && s.Host != "" }

// addr returns the address of a server, with brackets around an IPv6 host.
func addr(host string, port int, socket string) string {
	if socket != "" {
		return "unix:" + socket
	}
	return net.JoinHostPort(host, strconv.Itoa(port))
}
