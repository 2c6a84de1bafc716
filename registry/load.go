package registry

import (
	"cmp"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/pelletier/go-toml/v2"

	"github.com/rankd/rankd/internal/errtext"
	"github.com/rankd/rankd/internal/fileio"
)

//go:embed tables/*.toml
var defaultTables embed.FS

// environments lists the known environments.
var environments = [...]string{"dev", "test", "prod"}

// Names appear in requests and responses as names of members.
var validName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

// Limits of the tables. They catch mistakes, such as seconds in place of milliseconds or a digit too many.
const (
	maxInflightLimit = 1 << 20
	connectionsLimit = 1024
	timeoutLimit     = 3_600_000 // milliseconds
	cacheBytesLeast  = 1 << 20
	cacheBytesLimit  = 1 << 38
	databaseLimit    = 1 << 16
	tableMaxBytes    = 1 << 20 // of one file
)

// problemsShown bounds how many problems an error lists. The error counts the rest.
const problemsShown = 20

// idName is the name of the row id in responses.
const idName = "id"

// BuiltIn is the name of the registry of the built-in tables.
const BuiltIn = "the built-in registry"

// Default returns the registry of the built-in tables for env.
func Default(env string) (*Registry, error) {
	r, err := Load(DefaultTables(), env)
	if err != nil {
		return nil, err
	}
	return r.Named(BuiltIn), nil
}

// DefaultTables returns the folder of the built-in tables.
func DefaultTables() fs.FS {
	tables, err := fs.Sub(defaultTables, "tables")
	if err != nil {
		panic(err) // The name is a valid one.
	}
	return tables
}

// Load reads keys.toml, endpoints.<env>.toml and, if they are there, params.toml, entities.toml and params.<env>.toml from the folder tables. env is "dev",
// "test" or "prod". The error joins all problems, one per line, each with file and entry.
func Load(tables fs.FS, env string) (*Registry, error) {
	if !slices.Contains(environments[:], env) {
		return nil, fmt.Errorf("registry: unknown environment %s, expected one of %s",
			errtext.Quote(env), strings.Join(environments[:], ", "))
	}
	l := loader{tables: tables}
	r := &Registry{env: env, family: new(int)}
	l.readLock()
	l.keys(r)
	l.params(r)
	l.constants(r)
	for _, p := range r.params {
		if p.Default != nil {
			r.defaults = append(r.defaults, p)
		}
	}
	l.readEntities(r)
	l.endpoints(r)
	if err := l.failure(); err != nil {
		return nil, err
	}
	return r, nil
}

// failure joins the problems.
func (l *loader) failure() error {
	if more := l.found - len(l.problems); more > 0 {
		l.problems = append(l.problems, fmt.Errorf("and %d more problems", more))
	}
	return errors.Join(l.problems...)
}

// InFolder returns an error of Load whose lines each begin with a name of the folder.
func InFolder(folder string, err error) error {
	joined, several := err.(interface{ Unwrap() []error })
	if !several {
		return fmt.Errorf("%s: %w", folder, err)
	}
	problems := slices.Clone(joined.Unwrap())
	for i, problem := range problems {
		problems[i] = fmt.Errorf("%s: %w", folder, problem)
	}
	return errors.Join(problems...)
}

// loader gathers the problems of all files.
type loader struct {
	tables   fs.FS
	found    int     // problems
	problems []error // the first problemsShown of them
	lock     lockFile
	locking  bool // gives ids to rows without one in the lock
}

func (l *loader) problem(file, entry, format string, args ...any) {
	if l.found++; l.found > problemsShown {
		return
	}
	where := errtext.Name(file)
	if entry != "" {
		where += ": " + entry
	}
	l.problems = append(l.problems, fmt.Errorf("%s: "+format, append([]any{where}, args...)...))
}

// decode reads file into rows, a pointer to a struct, and returns the text. It returns false after it has reported a problem.
func (l *loader) decode(file string, rows any) (text []byte, ok bool) {
	text, err := fileio.Read(l.tables, file, tableMaxBytes)
	if err != nil {
		l.problem(file, "", "%w", err)
		return nil, false
	}
	return text, l.unmarshal(file, text, rows)
}

// unmarshal is decode for a text that has been read.
func (l *loader) unmarshal(file string, text []byte, rows any) bool {
	before := l.found
	atLine := func(line int, format string, args ...any) {
		l.problem(file, fmt.Sprintf("line %d", line), format, args...)
	}
	checkShape(text, rows, atLine)
	if l.found > before {
		return false
	}
	err := toml.Unmarshal(text, rows)
	var malformed *toml.DecodeError
	switch {
	case errors.As(err, &malformed):
		line, _ := malformed.Position()
		atLine(line, "%s", errtext.Text(strings.TrimPrefix(malformed.Error(), "toml: ")))
	case err != nil:
		l.problem(file, "", "%w", err)
	}
	return err == nil
}

// entries checks ids and names, which the entries of every table have: each must be present, well
// formed and unique.
type entries[ID comparable] struct {
	*loader
	file  string
	what  string // "key", "param", "endpoint"
	ids   map[ID]bool
	names map[string]bool
}

func newEntries[ID comparable](l *loader, file, what string) *entries[ID] {
	return &entries[ID]{l, file, what, make(map[ID]bool), make(map[string]bool)}
}

// label names an entry by its id, or by its position if the id is missing.
func (e *entries[ID]) label(i int, id *ID) string {
	if id == nil {
		return fmt.Sprintf("%s at position %d", e.what, i+1)
	}
	return e.what + " " + errtext.Text(fmt.Sprint(*id))
}

// identify checks id and name. It returns true if the id is new.
func (e *entries[ID]) identify(label string, id *ID, name string) bool {
	switch {
	case name == "":
		e.problem(e.file, label, "name is missing")
	case !validName.MatchString(name):
		e.problem(e.file, label, "name %s must consist of letters, digits and _", errtext.Quote(name))
	case e.names[name]:
		e.problem(e.file, label, "name %s is taken already", errtext.Quote(name))
	}
	e.names[name] = true

	switch {
	case id == nil:
		e.problem(e.file, label, "id is missing")
		return false
	case e.ids[*id]:
		e.problem(e.file, label, "id is taken already")
		return false
	}
	e.ids[*id] = true
	return true
}

// numericID checks the range of a key or param id.
func (l *loader) numericID(file, label string, id *int64) {
	if id != nil && (*id < 1 || *id > math.MaxUint32) {
		l.problem(file, label, "id must be 1 to %d", uint32(math.MaxUint32))
	}
}

// typeOf returns one of the allowed types, and for vector(64) also the number, or 0 after reporting a problem.
func (l *loader) typeOf(file, label, name string, allowed ...Type) (_ Type, dims int) {
	if text, ok := strings.CutPrefix(name, "vector("); ok {
		text, ok = strings.CutSuffix(text, ")")
		n, err := strconv.Atoi(text)
		if !ok || err != nil || n < 1 || n > VectorDimsMax {
			l.problem(file, label, "type %s: a vector has 1 to %d numbers, as in vector(64)", errtext.Quote(name), VectorDimsMax)
			return 0, 0
		}
		return Vector, n
	}
	return l.typeNamed(file, label, name, allowed...), 0
}

// typeNamed returns the type with that name, or 0 after reporting a problem.
func (l *loader) typeNamed(file, label, name string, allowed ...Type) Type {
	known := make([]string, len(allowed))
	for i, t := range allowed {
		known[i] = t.String()
		if t == Vector { // whose name is not whole
			known[i] += "(n)"
		} else if known[i] == name {
			return t
		}
	}
	l.problem(file, label, "unknown type %s, expected one of %s", errtext.Quote(name), strings.Join(known, ", "))
	return 0
}

// endpoints reads the endpoints of every environment that has a file and compares them. It keeps
// the endpoints of r's environment.
func (l *loader) endpoints(r *Registry) {
	files, err := fs.Glob(l.tables, "endpoints.*.toml")
	if err != nil {
		l.problem("endpoints.*.toml", "", "%w", err)
		return
	}
	own := endpointsFile(r.env)
	if !slices.Contains(files, own) {
		l.problem(own, "", "no such file")
		return
	}
	tables := make(map[string][]*Endpoint)
	for _, file := range files {
		env := strings.TrimSuffix(strings.TrimPrefix(file, "endpoints."), ".toml")
		if !slices.Contains(environments[:], env) {
			l.problem(file, "", "unknown environment %s, expected one of %s",
				errtext.Quote(env), strings.Join(environments[:], ", "))
			continue
		}
		if list, ok := l.endpointTable(file, env); ok {
			tables[env] = list
		}
	}
	list, ok := tables[r.env]
	if !ok {
		return
	}
	for _, env := range environments {
		if other, ok := tables[env]; ok && env != r.env {
			l.agree(own, list, endpointsFile(env), other)
		}
	}
	r.endpoints = list
	r.endpointByID = make(map[string]*Endpoint, len(list))
	for i, endpoint := range list {
		endpoint.Index = i
		r.endpointByID[endpoint.ID] = endpoint
	}
}

func endpointsFile(env string) string { return "endpoints." + env + ".toml" }

// endpointTable reads one file and returns its endpoints, ascending by id. It returns false if the file cannot be
// decoded. It reports problems of single entries; the other entries can still be compared.
func (l *loader) endpointTable(file, env string) ([]*Endpoint, bool) {
	table := newEndpointRows()
	if _, ok := l.decode(file, table.Interface()); !ok {
		return nil, false
	}
	e := newEntries[string](l, file, "endpoint")
	var list []*Endpoint
	for i, rows := 0, table.Elem().Field(0); i < rows.Len(); i++ {
		row := endpointRow{rows.Index(i)}
		var id *string
		if given, ok := row.get("id").(string); ok {
			id = &given
		}
		endpoint := l.endpoint(file, e.label(i, id), env, row)
		if e.identify(e.label(i, id), id, endpoint.Name) {
			endpoint.ID = *id
			list = append(list, endpoint)
		}
	}
	slices.SortFunc(list, func(a, b *Endpoint) int { return cmp.Compare(a.ID, b.ID) })
	return list, true
}

// endpoint reads one row, without its id. No problem quotes a text that may hold a password.
func (l *loader) endpoint(file, label, env string, row endpointRow) *Endpoint {
	e := &Endpoint{Name: row.text("name"), Kind: EndpointKind(row.text("kind"))}
	if id, ok := row.get("id").(string); ok && (!strings.HasPrefix(id, "ep_") || !validName.MatchString(id)) {
		l.problem(file, label, `id must start with "ep_" and consist of letters, digits and _`)
	}
	if e.Kind != Redis && e.Kind != HTTP {
		l.problem(file, label, "unknown kind %s, expected one of %s, %s", errtext.Quote(string(e.Kind)), Redis, HTTP)
	}
	e.setDefaults()
	inURL := l.address(file, label, row, e)
	for _, s := range settings {
		if s.source == ownField {
			l.setting(file, label, row, e, s, inURL[s])
		}
	}
	l.headers(file, label, row.headers(), e)
	l.dialect(file, label, row, e)
	for _, err := range e.problems() {
		l.problem(file, label, "%w", err)
	}
	switch {
	case !e.Embedded:
	case env != "dev":
		l.problem(file, label, "only dev has an embedded Redis")
	case e.Kind != Redis:
		l.problem(file, label, "only kind %s can be embedded", Redis)
	case e.Policy.Username != "" || !e.Policy.Password.IsZero() || e.Policy.Database != 0:
		l.problem(file, label, "the embedded Redis has neither password nor databases")
	}
	return e
}

// setting reads the fields of one setting. inURL says that the URL has it.
func (l *loader) setting(file, label string, row endpointRow, e *Endpoint, s *setting, inURL bool) {
	name, given := s.name, row.get(s.name)
	if _, secret := s.value(e).(Secret); secret {
		given = nil
		for _, end := range secretSources {
			text := row.text(s.name + end)
			switch {
			case text == "":
			case given != nil:
				l.problem(file, label, "%s: the value is given twice", s.name+end)
			default:
				name, given = s.name+end, secretFrom(end, text)
			}
		}
	}
	switch {
	case given == nil || given == "":
		return
	case inURL && (s.url || s == databaseSetting || given != s.said(e)): // The scheme may agree with cluster, master and tls.
		l.problem(file, label, "%s: the url has it, too", name)
		return
	case given == false && !s.not || len(s.one) > 0 && given == s.one[0]:
		return // as without the field
	}
	if err := s.allowed(e); err != nil {
		l.problem(file, label, "%s %w", name, err)
	} else if err := s.put(e, given); err != nil {
		shown := "" // of a number, and of a word
		if n, ok := given.(int64); ok {
			shown = fmt.Sprintf(", not %d", n)
		} else if s.one != nil {
			shown = ", not " + errtext.Quote(given.(string))
		}
		l.problem(file, label, "%s %w%s", name, err, shown)
	}
}

// address reads where the endpoint is: from url, or else from host and port. It returns the settings that the URL has.
func (l *loader) address(file, label string, row endpointRow, e *Endpoint) (inURL map[*setting]bool) {
	text, ok := row.get("url").(string)
	if !ok {
		e.Host, e.Port = l.hostPort(file, label, row)
		return nil
	}
	var err error
	if e.Kind == HTTP {
		err = e.parseService(text)
	} else {
		inURL, err = e.parseServer(text)
	}
	switch {
	case err != nil:
		l.problem(file, label, "url: %w", err)
	case !strings.Contains(text, ":/"):
		l.problem(file, label, "url begins with redis://, redis+cluster://, redis+sentinel:// or unix://, with rediss for TLS; host and port are fields of their own")
	}
	if row.get("host") != nil || row.get("port") != nil || row.get("embedded") == true {
		l.problem(file, label, "url excludes host, port and embedded")
	}
	return inURL
}

// hostPort checks the fields host and port.
func (l *loader) hostPort(file, label string, row endpointRow) (host string, port int) {
	host = row.text("host")
	switch {
	case strings.ContainsAny(host, "@/"): // a URL, which may hold a password
		l.problem(file, label, "host must be a host name or an IP address; a URL belongs in url")
	case !ValidHost(host):
		l.problem(file, label, "host %s must be a host name or an IP address", errtext.Quote(host))
	}
	number, _ := row.get("port").(int64)
	if number < 1 || number > math.MaxUint16 {
		l.problem(file, label, "port must be 1 to 65535, not %d", number)
	}
	return host, int(number)
}

// setDefaults fills in what an endpoint of its kind has if the table leaves it out.
func (e *Endpoint) setDefaults() {
	e.Policy = Policy{
		MaxInflight: DefaultMaxInflight, Connections: DefaultConnections,
		ConnectTimeout: DefaultConnectTimeout, RequestTimeout: DefaultRequestTimeout,
	}
	if e.Kind == HTTP {
		e.Policy.Connections = DefaultHTTPConnections
		e.Service.MaxRequestBytes, e.Service.MaxAnswerBytes = DefaultMaxBodyBytes, DefaultMaxBodyBytes
	}
}

// problems returns what is wrong with settings together.
func (e *Endpoint) problems() (list []error) {
	if e.Policy.Username != "" && e.Policy.Password.IsZero() {
		list = append(list, errUser)
	}
	for _, err := range []error{e.TLS.check(), e.Policy.Replicas.check(), e.Policy.Sentinel.check(), e.ClusterProblem()} {
		if err != nil {
			list = append(list, err)
		}
	}
	return list
}

// agree reports where the endpoints of two environments differ in id, name or kind.
func (l *loader) agree(file string, list []*Endpoint, otherFile string, other []*Endpoint) {
	byID := func(list []*Endpoint) map[string]*Endpoint {
		m := make(map[string]*Endpoint, len(list))
		for _, endpoint := range list {
			m[endpoint.ID] = endpoint
		}
		return m
	}
	mine, theirs := byID(list), byID(other)
	for _, endpoint := range list {
		label := "endpoint " + errtext.Text(endpoint.ID)
		there, ok := theirs[endpoint.ID]
		switch {
		case !ok:
			l.problem(otherFile, label, "is missing, but %s has it", file)
		case there.Name != endpoint.Name:
			l.problem(otherFile, label, "is named %s, but %s in %s",
				errtext.Quote(there.Name), errtext.Quote(endpoint.Name), file)
		case there.Kind != endpoint.Kind:
			l.problem(otherFile, label, "has kind %s, but %s in %s",
				errtext.Quote(string(there.Kind)), errtext.Quote(string(endpoint.Kind)), file)
		}
	}
	for _, endpoint := range other {
		if mine[endpoint.ID] == nil {
			l.problem(file, "endpoint "+errtext.Text(endpoint.ID), "is missing, but %s has it", otherFile)
		}
	}
}
