package registry

import (
	"errors"
	"fmt"
	"maps"
	"net"
	"net/url"
	"path"
	"slices"
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
	errScheme  = errors.New("the scheme must be redis://, redis+cluster://, redis+sentinel:// or unix://, with rediss for TLS")
	errURL     = errors.New("the URL is malformed; special characters in a password are written as %XX, such as %40 for @ and %2F for /")
	errHostArg = errors.New("host or port is missing; a URL begins with redis://, redis+cluster://, redis+sentinel:// or unix://, with rediss for TLS")
	errPort    = errors.New("host is missing, or port is not a number from 1 to 65535")
	errHost    = errors.New("host must be a host name or an IP address")
	errDB      = errors.New("the database must be a number from 0 to 65536, once: after the host or as db=")
	errSocket  = errors.New("a unix socket needs an absolute path without %, ? and #: unix:///path/to/redis.sock")
	errQuery   = errors.New("after ? there are db, username, password, password_file and password_env, tls_* with rediss://, read_from and replica_max_lag_bytes with redis+cluster://, and sentinel_* with redis+sentinel://, each at most once")
	errSeeds   = errors.New("redis+cluster:// and redis+sentinel:// name at most 16 nodes, as host:port with commas between them")
	errCluster = errors.New("a Redis Cluster has only database 0")
	errOne     = errors.New("the address is that of a Redis Cluster or of sentinels, and one server is needed here")
	errMaster  = errors.New("redis+sentinel:// names the master as /name behind the sentinels, in letters, digits, dots, - and _")
	errUser    = errors.New("a username needs a password: user:password@ in a URL, or password, password_file or password_env")
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
	e := Endpoint{Kind: Redis}
	given, err := e.parseServer(text)
	if err != nil {
		return Server{}, err
	}
	return Server{
		Host: e.Host, Port: e.Port, Socket: e.Socket, Cluster: e.Cluster, Others: e.Others, TLS: e.TLS, Master: e.Master,
		Sentinel: e.Policy.Sentinel, Replicas: e.Policy.Replicas, Username: e.Policy.Username, Password: e.Policy.Password,
		Database: e.Policy.Database, HasDatabase: given[databaseSetting],
	}, nil
}

// databaseSetting is the one that a URL can have in its path, too.
var databaseSetting = settings[slices.IndexFunc(settings, func(s *setting) bool { return s.name == "policy.database" })]

// parseServer is ParseServer for an endpoint. It returns the settings that the text has, except host, port and socket.
func (e *Endpoint) parseServer(text string) (map[*setting]bool, error) {
	if !strings.Contains(text, "://") && !strings.HasPrefix(text, "unix:") {
		return nil, e.setHostPort(text)
	}
	defaults := *e
	scheme, _, _ := strings.Cut(text, ":")
	scheme = strings.ToLower(scheme)
	if plain, secure := strings.CutPrefix(scheme, "rediss"); secure {
		e.TLS, scheme = new(TLS), "redis"+plain
	}
	port := defaultPort
	switch scheme {
	case "redis", "unix":
	case clusterScheme, sentinelScheme:
		if e.Cluster = scheme == clusterScheme; !e.Cluster {
			port = sentinelPort
		}
		var err error
		if text, e.Others, err = cutOthers(text, port); err != nil {
			return nil, err
		}
	default:
		return nil, errScheme
	}
	u, err := url.Parse(text)
	if err != nil || u.Opaque != "" || u.Fragment != "" || strings.HasSuffix(text, "#") {
		return nil, errURL
	}
	if scheme == sentinelScheme {
		err = e.setMaster(u)
	}
	database := ""
	switch {
	case err != nil:
	case scheme == "unix":
		err = e.setSocket(u)
	default:
		database, err = e.setHost(u, port)
	}
	if err != nil {
		return nil, err
	}
	password, _ := u.User.Password()
	e.Policy.Username, e.Policy.Password = u.User.Username(), NewSecret(password)
	given := make(map[*setting]bool)
	for _, s := range settings {
		given[s] = s.source == ownField && s.has(e) && !s.has(&defaults)
	}
	if err := e.setQuery(u, database, given); err != nil {
		return nil, err
	}
	if problems := e.problems(); len(problems) > 0 {
		return nil, problems[0]
	}
	return given, nil
}

// setQuery reads the settings of a query, and the database of the path. It adds them to given.
func (e *Endpoint) setQuery(u *url.URL, database string, given map[*setting]bool) error {
	query, err := url.ParseQuery(u.RawQuery)
	if err != nil {
		return errURL
	}
	if database != "" && query["db"] == nil {
		query["db"], database = []string{database}, ""
	}
	for _, name := range slices.Sorted(maps.Keys(query)) {
		values := query[name]
		s, end := urlSetting(name)
		switch {
		case len(values) != 1 || values[0] == "" || s == nil && name != "db":
			return errQuery
		case name == "db":
			n, err := strconv.ParseUint(values[0], 10, 31)
			if err != nil || n > databaseLimit || database != "" {
				return errDB
			}
			e.Policy.Database, given[databaseSetting] = int(n), true
			continue
		case given[s]:
			return fmt.Errorf("%s is given twice", s.short())
		}
		if err := s.parse(e, end, values[0]); err != nil {
			return fmt.Errorf("%s %w", name, err)
		}
		given[s] = true
	}
	return nil
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
		var node Endpoint
		if err := node.setHostPort(host); err != nil {
			return "", "", errSeeds
		}
		list = append(list, addr(node.Host, node.Port, ""))
	}
	return text[:begin] + hosts[0] + text[end:], strings.Join(list, ","), nil
}

// setHostPort reads "host:port".
func (e *Endpoint) setHostPort(text string) error {
	host, port, err := net.SplitHostPort(text)
	if err != nil {
		return errHostArg
	}
	n, err := strconv.Atoi(port)
	if host == "" || err != nil || n < 1 || n > 65535 {
		return errPort
	}
	if !ValidHost(host) {
		return errHost
	}
	e.Host, e.Port = host, n
	return nil
}

// setMaster takes the name of the master out of the path of a redis+sentinel:// URL.
func (e *Endpoint) setMaster(u *url.URL) error {
	e.Master, u.Path, _ = strings.Cut(strings.TrimPrefix(u.Path, "/"), "/")
	if !validMaster(e.Master) {
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

// setHost reads host and port of a redis:// URL. missing replaces a missing port. It returns the database of the path.
func (e *Endpoint) setHost(u *url.URL, missing int) (database string, err error) {
	port := u.Port()
	if port == "" {
		if strings.HasSuffix(u.Host, ":") {
			return "", errPort
		}
		port = strconv.Itoa(missing)
	}
	return strings.TrimSuffix(strings.TrimPrefix(u.Path, "/"), "/"), e.setHostPort(net.JoinHostPort(u.Hostname(), port))
}

// setSocket reads the path of a unix:// URL.
func (e *Endpoint) setSocket(u *url.URL) error {
	if u.Host != "" || !path.IsAbs(u.Path) || strings.HasSuffix(u.Path, "/") || !validSocket(u.Path) {
		return errSocket
	}
	e.Socket = "/" + strings.TrimLeft(u.Path, "/") // unix://h would have a host
	return nil
}

// socketMaxBytes is the longest path of a unix socket that every system takes.
const socketMaxBytes = 103

// validSocket reports whether a socket can have the path. Its address will be parsed as a URL again, so it must not
// have characters with a meaning in URLs.
func validSocket(path string) bool {
	return path != "" && path[0] == '/' && len(path) <= socketMaxBytes && !strings.ContainsFunc(path, func(r rune) bool { return r < ' ' || r == 0x7f || strings.ContainsRune("%?#", r) })
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
