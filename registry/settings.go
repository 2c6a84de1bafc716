package registry

import (
	"cmp"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/rankd/rankd/internal/errtext"
)

// A setting is one thing that a table says about an endpoint. The reader of tables, the reader of URLs, both printed
// forms and the digest go through the list of settings. Immutable; any goroutine.
type setting struct {
	// name is the field in a table: "policy.max_inflight". A Secret has two more fields, with _file and _env. Behind
	// the dot is the member in JSON, and the parameter of a URL.
	name string
	// at returns a pointer to the value: a string, a bool, an int64, a duration in milliseconds, a Secret or headers,
	// or a type like these. The setting must not be changed through it, if there is a set.
	at          func(e *Endpoint) any
	set         func(e *Endpoint, value any) // nil: the value goes where at points
	need        func(e *Endpoint) error      // why an endpoint cannot have the setting: what to say behind its name; nil: each can
	least, most int64                        // the range of a number
	one         []string                     // of a string with few values: all of them, the zero value first
	path        bool                         // of a string: it names a file
	not         bool                         // of a bool: tables say the opposite
	hidden      bool                         // of a Secret: it is one wherever it stands, so its text does not count in the digest
	url         bool                         // the URL of a Redis may have it as a parameter; "db" is the one of the database
	source      source
	column      bool // WriteText shows it in a column of its own
}

// source says where a setting is read in a table.
type source uint8

const (
	ownField  source = iota
	ownReader        // from its field, by the loader, with rules of its own
	partOfURL        // from the field url alone
)

// What an endpoint lacks that cannot have a setting.
const (
	needsRedis    = "is only for kind redis"
	needsHTTP     = "is only for kind http"
	needsTLS      = "needs TLS: rediss://, or tls = true in a table"
	needsCluster  = "needs a Redis Cluster; replicas of a single master, or of one that sentinels know, are not read"
	needsSentinel = "needs a master that sentinels know: redis+sentinel://, or master in a table"
)

// settings is in the order of JSON. One that another needs stands before it.
var settings = []*setting{
	{name: "id", at: func(e *Endpoint) any { return &e.ID }, source: ownReader, column: true},
	{name: "name", at: func(e *Endpoint) any { return &e.Name }, source: ownReader, column: true},
	{name: "kind", at: func(e *Endpoint) any { return &e.Kind }, source: ownReader, column: true},
	{name: "host", at: func(e *Endpoint) any { return &e.Host }, source: ownReader, column: true},
	{name: "port", at: func(e *Endpoint) any { return &e.Port }, source: ownReader, column: true},
	{name: "socket", at: func(e *Endpoint) any { return &e.Socket }, source: partOfURL, column: true},
	{name: "others", at: func(e *Endpoint) any { return &e.Others }, source: partOfURL, column: true},
	{name: "path", at: func(e *Endpoint) any { return &e.Service.Path }, source: partOfURL, column: true},
	{name: "query", at: func(e *Endpoint) any { return &e.Service.Query }, source: partOfURL},
	{name: "embedded", at: func(e *Endpoint) any { return &e.Embedded }, column: true},
	{name: "cluster", at: func(e *Endpoint) any { return &e.Cluster }, column: true},
	{name: "master", at: func(e *Endpoint) any { return &e.Master }, column: true},
	{
		name: "tls", at: func(e *Endpoint) any { on := e.TLS != nil || e.Service.TLS; return &on }, column: true,
		set: func(e *Endpoint, _ any) { e.TLS = new(TLS) },
		need: func(e *Endpoint) error {
			return unless(e.Kind == Redis && e.Socket == "" && !e.Embedded, "is only for kind redis, without a unix socket and not embedded")
		},
	},
	{name: "tls_ca", at: func(e *Endpoint) any { return &e.TLS.files().CA }, need: hasTLS, path: true, url: true},
	{name: "tls_cert", at: func(e *Endpoint) any { return &e.TLS.files().Cert }, need: hasTLS, path: true, url: true},
	{name: "tls_key", at: func(e *Endpoint) any { return &e.TLS.files().Key }, need: hasTLS, path: true, url: true},
	{name: "tls_server_name", at: func(e *Endpoint) any { return &e.TLS.files().ServerName }, need: hasTLS, url: true},
	{name: "header", at: func(e *Endpoint) any { return &e.Service.Headers }, source: ownReader},
	{name: "dialect", at: func(e *Endpoint) any { return &e.Service.Dialect }, need: isHTTP, one: []string{"json", string(Reranking), string(OpenInference)}},
	{name: "input", at: func(e *Endpoint) any { return &e.Service.Inputs }, source: ownReader},
	{name: "output", at: func(e *Endpoint) any { return &e.Service.Outputs }, source: ownReader},
	{name: "rerank.query", at: func(e *Endpoint) any { return &e.Service.Rerank.Query }, need: isReranking},
	{name: "rerank.document", at: func(e *Endpoint) any { return &e.Service.Rerank.Document }, need: isReranking},
	{name: "rerank.texts", at: func(e *Endpoint) any { return &e.Service.Rerank.Texts }, need: isReranking},
	{name: "rerank.model", at: func(e *Endpoint) any { return &e.Service.Rerank.Model }, need: isReranking},
	{name: "rerank.max_batch", at: func(e *Endpoint) any { return &e.Service.Rerank.MaxBatch }, need: isReranking, least: 1, most: 1 << 16},
	{name: "rerank.pointwise", at: func(e *Endpoint) any { return &e.Service.Rerank.Pointwise }, need: isReranking},
	{name: "rerank.max_document_bytes", at: func(e *Endpoint) any { return &e.Service.Rerank.MaxDocumentBytes }, need: isReranking, least: 1, most: maxBodyBytesLimit},
	{
		name: "sentinel_tls", at: func(e *Endpoint) any { return &e.Policy.Sentinel.Plain }, not: true, url: true,
		need: func(e *Endpoint) error {
			return cmp.Or(hasMaster(e), unless(e.TLS != nil, "needs TLS to the master: rediss+sentinel://, or tls = true in a table"))
		},
	},

	{name: "policy.max_inflight", at: func(e *Endpoint) any { return &e.Policy.MaxInflight }, least: 1, most: maxInflightLimit, column: true},
	{name: "policy.connections", at: func(e *Endpoint) any { return &e.Policy.Connections }, least: 1, most: connectionsLimit, column: true},
	{name: "policy.connect_timeout_ms", at: func(e *Endpoint) any { return &e.Policy.ConnectTimeout }, least: 1, most: timeoutLimit, column: true},
	{name: "policy.request_timeout_ms", at: func(e *Endpoint) any { return &e.Policy.RequestTimeout }, least: 1, most: timeoutLimit, column: true},
	{name: "policy.on_error", at: func(e *Endpoint) any { return &e.Policy.OnError }, one: []string{"auto", "fail"}},
	{name: "policy.timeout_percent", at: func(e *Endpoint) any { return &e.Policy.TimeoutPercent }, least: 1, most: 99},
	{name: "policy.username", at: func(e *Endpoint) any { return &e.Policy.Username }, need: isRedis, url: true, column: true},
	{name: "policy.password", at: func(e *Endpoint) any { return &e.Policy.Password }, need: isRedis, url: true, column: true, hidden: true},
	{name: "policy.database", at: func(e *Endpoint) any { return &e.Policy.Database }, need: isRedis, most: databaseLimit, column: true},
	{
		name: "policy.cache", at: func(e *Endpoint) any { return &e.Policy.Cache.Mode },
		one:  []string{"off", string(CacheTTL), string(CacheBroadcast), string(CacheTrack)},
		set:  func(e *Endpoint, mode any) { e.Policy.Cache = defaultCache(CacheMode(mode.(string))) },
		need: isRedis,
	},
	{name: "policy.cache_max_bytes", at: func(e *Endpoint) any { return &e.Policy.Cache.MaxBytes }, need: hasCache, least: cacheBytesLeast, most: cacheBytesLimit},
	{name: "policy.cache_max_age_ms", at: func(e *Endpoint) any { return &e.Policy.Cache.MaxAge }, need: hasCache, least: 1, most: timeoutLimit},
	{name: "policy.cache_require", at: func(e *Endpoint) any { return &e.Policy.Cache.Required }, need: isTracked},
	{name: "policy.tracking_max_silence_ms", at: func(e *Endpoint) any { return &e.Policy.Cache.MaxSilence }, need: isTracked, least: 1, most: timeoutLimit},
	{
		name: "policy.read_from", at: func(e *Endpoint) any { return &e.Policy.Replicas.ReadFrom }, need: isCluster, url: true,
		one: []string{"master", string(ReadReplica), string(ReadNearest)},
	},
	{name: "policy.replica_max_lag_bytes", at: func(e *Endpoint) any { return &e.Policy.Replicas.MaxLagBytes }, need: isCluster, url: true, least: 1, most: replicaLagLimit},
	{name: "policy.sentinel_username", at: func(e *Endpoint) any { return &e.Policy.Sentinel.Username }, need: hasMaster, url: true},
	{name: "policy.sentinel_password", at: func(e *Endpoint) any { return &e.Policy.Sentinel.Password }, need: hasMaster, url: true, hidden: true},
	{name: "policy.bearer_token", at: func(e *Endpoint) any { return &e.Service.BearerToken }, need: isHTTP, hidden: true},
	{name: "policy.max_request_bytes", at: func(e *Endpoint) any { return &e.Service.MaxRequestBytes }, need: isHTTP, least: 1, most: maxBodyBytesLimit},
	{name: "policy.max_answer_bytes", at: func(e *Endpoint) any { return &e.Service.MaxAnswerBytes }, need: isHTTP, least: 1, most: maxBodyBytesLimit},
}

// unless returns the problem unless ok is true.
func unless(ok bool, problem string) error {
	if ok {
		return nil
	}
	return errors.New(problem)
}

func isRedis(e *Endpoint) error { return unless(e.Kind == Redis, needsRedis) }
func isHTTP(e *Endpoint) error  { return unless(e.Kind == HTTP, needsHTTP) }
func hasTLS(e *Endpoint) error  { return unless(e.TLS != nil, needsTLS) }

func hasCache(e *Endpoint) error {
	return unless(e.Policy.Cache.Mode != CacheOff, "needs a policy.cache")
}

func isTracked(e *Endpoint) error {
	return unless(e.Policy.Cache.Mode.Tracked(), "is only for policy.cache broadcast and track")
}

func isCluster(e *Endpoint) error { return unless(e.Cluster, needsCluster) }
func hasMaster(e *Endpoint) error { return unless(e.Master != "", needsSentinel) }

// files returns t, and empty fields for an endpoint without TLS.
func (t *TLS) files() *TLS {
	if t == nil {
		return new(TLS)
	}
	return t
}

// short returns the name without "policy.".
func (s *setting) short() string { return s.name[strings.LastIndexByte(s.name, '.')+1:] }

// value returns the value of an endpoint: a string, a bool, an int64, a Secret or headers. The zero value means that
// an endpoint does not have the setting.
func (s *setting) value(e *Endpoint) any {
	v := reflect.ValueOf(s.at(e)).Elem()
	switch v.Kind() {
	case reflect.String:
		return v.String()
	case reflect.Bool:
		return v.Bool()
	case reflect.Int, reflect.Int64:
		if d, ok := v.Interface().(time.Duration); ok {
			return d.Milliseconds()
		}
		return v.Int()
	}
	return v.Interface()
}

// said returns the value as a table says it.
func (s *setting) said(e *Endpoint) any {
	v := s.value(e)
	if on, ok := v.(bool); ok {
		return on != s.not
	}
	return v
}

// has reports whether the value is another than the zero value.
func (s *setting) has(e *Endpoint) bool { return !reflect.ValueOf(s.at(e)).Elem().IsZero() }

// allowed returns why the endpoint cannot have the setting: what to say behind the name.
func (s *setting) allowed(e *Endpoint) error {
	if s.need == nil {
		return nil
	}
	return s.need(e)
}

// put takes a value of a table or a URL: a string, a bool, an int64 or a Secret. The error is what to say behind the
// name, and does not quote the value.
func (s *setting) put(e *Endpoint, value any) error {
	at := reflect.ValueOf(s.at(e)).Elem()
	switch given := value.(type) {
	case int64:
		if given < s.least || given > s.most {
			return fmt.Errorf("must be %d to %d", s.least, s.most)
		}
		if at.Type() == reflect.TypeFor[time.Duration]() {
			given *= int64(time.Millisecond)
		}
		at.SetInt(given)
		return nil
	case bool:
		value = given != s.not
	case Secret:
		if !isName(given.File) || !isName(given.Env) {
			return errNotName
		}
	case string:
		switch {
		case s.one != nil && !slices.Contains(s.one, given):
			last := len(s.one) - 1
			return fmt.Errorf("must be %s or %s", strings.Join(s.one[:last], ", "), s.one[last])
		case s.one != nil && given == s.one[0]:
			value = ""
		case s.path && !isName(given):
			return errNotName
		}
	}
	if s.set != nil {
		s.set(e, value)
	} else {
		at.Set(reflect.ValueOf(value).Convert(at.Type()))
	}
	return nil
}

// errNotName: a text stands where the name of its file belongs.
var errNotName = errors.New("must be the name of a file or a variable, in one line of printable characters; what it holds belongs there")

// isName reports whether a text may be the name of a file. A key in PEM, which somebody has pasted, is none.
func isName(text string) bool {
	return !strings.ContainsFunc(text, func(r rune) bool { return r < ' ' || r == 0x7f }) && !strings.Contains(text, "-----BEGIN")
}

// sources of a Secret, by the end of its field.
var secretSources = [...]string{"", "_file", "_env"}

func secretFrom(source, text string) Secret {
	switch source {
	case "_file":
		return Secret{File: text}
	case "_env":
		return Secret{Env: text}
	default:
		return NewSecret(text)
	}
}

// urlSetting returns the setting of a parameter in the URL of a Redis, and of a Secret the end of the name. It returns
// nil if URLs have no such parameter.
func urlSetting(name string) (s *setting, from string) {
	for _, s := range settings {
		end, ok := strings.CutPrefix(name, s.short())
		_, secret := s.at(&Endpoint{}).(*Secret)
		if s.url && ok && (end == "" || secret && slices.Contains(secretSources[:], end)) {
			return s, end
		}
	}
	return nil, ""
}

// parse takes a parameter of a URL. The error quotes nothing of the text.
func (s *setting) parse(e *Endpoint, from, text string) error {
	if err := s.allowed(e); err != nil {
		return err
	}
	var value any = text
	switch s.value(e).(type) {
	case Secret:
		value = secretFrom(from, text)
	case bool:
		if text != "true" && text != "false" {
			return errors.New("must be true or false")
		}
		value = text == "true"
	case int64:
		n, err := strconv.ParseInt(text, 10, 64)
		if err != nil {
			n = s.least - 1
		}
		value = n
	}
	return s.put(e, value)
}

// members returns what JSON shows of the setting, by name: nothing of the zero value, and nothing secret.
func (s *setting) members(e *Endpoint) (list []member) {
	switch v := s.said(e).(type) {
	case Secret:
		if s.has(e) {
			list = append(list, member{"has_" + s.short(), true})
		}
		for i, text := range []string{v.File, v.Env} {
			if text != "" {
				list = append(list, member{s.short() + secretSources[i+1], text})
			}
		}
	case []Header:
		if names := e.Service.headerNames(); names != nil {
			list = append(list, member{"headers", names})
		}
	default:
		switch {
		case s.name == "id":
			list = append(list, member{"endpoint_id", v})
		case s.has(e) || s.name == "embedded":
			list = append(list, member{s.short(), v})
		}
	}
	return list
}

// text returns what WriteText shows of the setting, nothing secret.
func (s *setting) text(e *Endpoint) string {
	switch v := s.said(e).(type) {
	case string:
		return errtext.Name(v)
	case []Header:
		return errtext.Name(strings.Join(e.Service.headerNames(), ","))
	case []Tensor:
		return tensorNames(v)
	default:
		return fmt.Sprint(v)
	}
}

// fingerprint returns what counts in the digest: the value, and of a secret its source.
func (s *setting) fingerprint(e *Endpoint) string {
	switch v := s.value(e).(type) {
	case Secret:
		return v.fingerprint(s.hidden)
	case []Header:
		var list []string
		for _, h := range v {
			list = append(list, fmt.Sprintf("%q %q", h.Name, h.Value.fingerprint(false)))
		}
		return strings.Join(list, "\n")
	case []Tensor:
		return fmt.Sprintf("%#v", v)
	default:
		return fmt.Sprint(v)
	}
}

// fingerprint returns the source of a secret, and its text if that is in the table and not to be hidden.
func (s Secret) fingerprint(hidden bool) string {
	switch {
	case s.File != "":
		return "file " + s.File
	case s.Env != "":
		return "variable " + s.Env
	case s.text != nil && hidden:
		return "hidden"
	default:
		return "text " + s.Reveal()
	}
}

// endpointRow is one [[endpoint]] as it was decoded. One goroutine.
type endpointRow struct{ fields reflect.Value }

// fieldName is the name of a field of a row: reflect wants exported ones.
func fieldName(name string) string { return "F_" + name }

// rowType returns the struct of the fields that begin with a prefix. A field of a single value is a pointer, nil if
// the table leaves it out. more has further fields, by name.
func rowType(prefix string, more map[string]reflect.Type) reflect.Type {
	var fields []reflect.StructField
	add := func(name string, t reflect.Type) {
		tag := reflect.StructTag(fmt.Sprintf("toml:%q", name))
		fields = append(fields, reflect.StructField{Name: fieldName(name), Type: t, Tag: tag})
	}
	for _, s := range settings {
		name, ok := strings.CutPrefix(s.name, prefix)
		if !ok || strings.Contains(name, ".") || s.source == partOfURL {
			continue
		}
		switch s.value(&Endpoint{}).(type) {
		case Secret:
			for _, end := range secretSources {
				add(name+end, reflect.TypeFor[*string]())
			}
		case []Header:
			add(name, reflect.TypeFor[[]headerRow]())
		case []Tensor:
			add(name, reflect.TypeFor[[]tensorRow]())
		case bool:
			add(name, reflect.TypeFor[*bool]())
		case int64:
			add(name, reflect.TypeFor[*int64]())
		default:
			add(name, reflect.TypeFor[*string]())
		}
	}
	for name, t := range more {
		add(name, t)
	}
	return reflect.StructOf(fields)
}

// newEndpointRows returns a pointer to what a file of endpoints is decoded into.
func newEndpointRows() reflect.Value {
	row := rowType("", map[string]reflect.Type{"url": reflect.TypeFor[*string](), "policy": rowType("policy.", nil), "rerank": rowType("rerank.", nil)})
	return reflect.New(reflect.StructOf([]reflect.StructField{{Name: "Endpoint", Type: reflect.SliceOf(row), Tag: `toml:"endpoint"`}}))
}

// get returns a field: a string, a bool or an int64, nil if the table leaves it out.
func (r endpointRow) get(name string) any {
	v := r.fields
	if table, field, ok := strings.Cut(name, "."); ok {
		v, name = v.FieldByName(fieldName(table)), field
	}
	if v = v.FieldByName(fieldName(name)); v.IsNil() {
		return nil
	}
	return v.Elem().Interface()
}

// text returns a field that is a string, "" if the table leaves it out.
func (r endpointRow) text(name string) string {
	text, _ := r.get(name).(string)
	return text
}

func (r endpointRow) headers() []headerRow {
	return r.fields.FieldByName(fieldName("header")).Interface().([]headerRow)
}

// A member is one of an object in JSON.
type member struct {
	name  string
	value any
}
