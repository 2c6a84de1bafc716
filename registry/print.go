package registry

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	jsonv2 "github.com/go-json-experiment/json"

	"github.com/rankd/rankd/internal/errtext"
)

// MarshalJSON writes the three tables as one object: env, keys, params, endpoints and, if there are any, entities. It shows whether
// an endpoint has a password, and where it comes from, not the password.
func (r *Registry) MarshalJSON() ([]byte, error) {
	type endpoint struct {
		ID               string       `json:"endpoint_id"`
		Name             string       `json:"name"`
		Kind             EndpointKind `json:"kind"`
		Host             string       `json:"host,omitempty"`
		Port             int          `json:"port,omitempty"`
		Socket           string       `json:"socket,omitempty"`
		Embedded         bool         `json:"embedded"`
		MaxInflight      int          `json:"max_inflight"`
		Connections      int          `json:"connections"`
		ConnectTimeoutMS int64        `json:"connect_timeout_ms"`
		RequestTimeoutMS int64        `json:"request_timeout_ms"`
		Username         string       `json:"username,omitempty"`
		HasPassword      bool         `json:"has_password,omitempty"`
		PasswordFile     string       `json:"password_file,omitempty"`
		PasswordEnv      string       `json:"password_env,omitempty"`
		Database         int          `json:"database,omitempty"`
		Cache            CacheMode    `json:"cache,omitempty"` // none: off
		CacheMaxBytes    int          `json:"cache_max_bytes,omitempty"`
		CacheMaxAgeMS    int64        `json:"cache_max_age_ms,omitempty"`
		CacheRequire     bool         `json:"cache_require,omitempty"`
		MaxSilenceMS     int64        `json:"tracking_max_silence_ms,omitempty"`
		TLS              bool         `json:"tls,omitempty"`
		Path             string       `json:"path,omitempty"`    // without the query
		Headers          []string     `json:"headers,omitempty"` // their names
		HasBearerToken   bool         `json:"has_bearer_token,omitempty"`
		MaxRequestBytes  int          `json:"max_request_bytes,omitempty"`
		MaxAnswerBytes   int          `json:"max_answer_bytes,omitempty"`
		Cluster          bool         `json:"cluster,omitempty"`
		Others           string       `json:"others,omitempty"` // further nodes of the cluster, or sentinels
		Master           string       `json:"master,omitempty"`
		TLSCA            string       `json:"tls_ca,omitempty"`
		TLSCert          string       `json:"tls_cert,omitempty"`
		TLSKey           string       `json:"tls_key,omitempty"`
		TLSServerName    string       `json:"tls_server_name,omitempty"`
		ReadFrom         ReadFrom     `json:"read_from,omitempty"` // none: master
		ReplicaMaxLag    int64        `json:"replica_max_lag_bytes,omitempty"`
		SentinelUsername string       `json:"sentinel_username,omitempty"`
		HasSentinelPass  bool         `json:"has_sentinel_password,omitempty"`
		SentinelPassFile string       `json:"sentinel_password_file,omitempty"`
		SentinelPassEnv  string       `json:"sentinel_password_env,omitempty"`
		SentinelPlain    bool         `json:"sentinel_plain,omitempty"`
	}
	endpoints := make([]endpoint, len(r.endpoints))
	for i, e := range r.endpoints {
		cache, files, sentinel := e.Policy.Cache, TLS{}, e.Policy.Sentinel
		if e.TLS != nil {
			files = *e.TLS
		}
		endpoints[i] = endpoint{
			e.ID, e.Name, e.Kind, e.Host, e.Port, e.Socket, e.Embedded, e.Policy.MaxInflight, e.Policy.Connections,
			e.Policy.ConnectTimeout.Milliseconds(), e.Policy.RequestTimeout.Milliseconds(),
			e.Policy.Username, !e.Policy.Password.IsZero(), e.Policy.Password.File, e.Policy.Password.Env, e.Policy.Database,
			cache.Mode, cache.MaxBytes, cache.MaxAge.Milliseconds(), cache.Required, cache.MaxSilence.Milliseconds(),
			e.Service.TLS || e.TLS != nil, e.Service.Path, e.Service.headerNames(), !e.Service.BearerToken.IsZero(),
			e.Service.MaxRequestBytes, e.Service.MaxAnswerBytes, e.Cluster, e.Others, e.Master, files.CA, files.Cert, files.Key, files.ServerName,
			e.Policy.Replicas.ReadFrom, e.Policy.Replicas.MaxLagBytes,
			sentinel.Username, !sentinel.Password.IsZero(), sentinel.Password.File, sentinel.Password.Env, sentinel.Plain,
		}
	}
	return json.Marshal(struct {
		Env       string     `json:"env"`
		Keys      []*Key     `json:"keys"`
		Params    []*Param   `json:"params"`
		Endpoints []endpoint `json:"endpoints"`
		Entities  []*Entity  `json:"entities,omitempty"`
	}{r.env, r.keys, r.params, endpoints, r.entities})
}

// WriteText writes the three tables for people, with aligned columns. The error comes from w.
func (r *Registry) WriteText(w io.Writer) error {
	// The writer buffers everything until Flush, which returns the first error.
	tw := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)

	fmt.Fprintln(tw, "KEY\tNAME\tTYPE\tNULLABLE\tWRITABLE\tFIELD\tDEFAULT")
	for _, k := range r.keys {
		field := "-"
		if k.Field != "" {
			field = k.Field
		}
		fmt.Fprintf(tw, "%d\t%s\t%s\t%s\t%s\t%s\t%s\n", k.ID, k.Name, k.TypeName(), yes(k.Nullable), yes(k.Writable), field, defaultText(k.Default))
	}

	fmt.Fprintln(tw, "\nPARAM\tNAME\tTYPE\tNULLABLE\tCONTEXT\tOVERRIDE\tDEFAULT")
	for _, p := range r.params {
		fmt.Fprintf(tw, "%d\t%s\t%s\t%s\t%s\t%s\t%s\n", p.ID, p.Name, p.Type, yes(p.Nullable), yes(p.Context), yes(p.Override), defaultText(p.Default))
	}

	if len(r.entities) > 0 {
		fmt.Fprintln(tw, "\nENTITY\tID")
	}
	for _, e := range r.entities {
		fmt.Fprintf(tw, "%s\t%s\n", e.Name, e.ID)
	}

	fmt.Fprintf(tw, "\nENDPOINT (%s)\tNAME\tKIND\tADDRESS\t", r.env)
	fmt.Fprintln(tw, "DATABASE\tUSER\tPASSWORD\tMAX INFLIGHT\tCONNECTIONS\tCONNECT TIMEOUT\tREQUEST TIMEOUT\tSETTINGS")
	for _, e := range r.endpoints {
		addr, secret := e.shownAddr(), e.Policy.Password
		if e.Kind == HTTP {
			addr += e.Service.Path
			if e.Service.TLS {
				addr = "https://" + addr
			}
			secret = e.Service.BearerToken
		}
		user := e.Policy.Username
		if user == "" {
			user = "-"
		}
		fmt.Fprintf(tw, "%s\t%s\t%s\t%s\t%d\t%s\t%v\t%d\t%d\t%v\t%v\t%s\n", e.ID, e.Name, e.Kind, addr,
			e.Policy.Database, user, secret, e.Policy.MaxInflight, e.Policy.Connections, e.Policy.ConnectTimeout, e.Policy.RequestTimeout, e.settings())
	}
	return tw.Flush()
}

// shownAddr returns the address of a Redis as a URL without login and database: "redis+sentinel://h:26379/master". That of a plain server has no scheme.
func (e *Endpoint) shownAddr() string {
	addr, scheme := e.Addr(), "redis"
	if e.TLS != nil {
		scheme = "rediss"
	}
	switch {
	case e.Embedded:
		return "embedded"
	case e.Cluster:
		return scheme + "+cluster://" + addr
	case e.Master != "":
		return scheme + "+sentinel://" + addr + "/" + e.Master
	case e.TLS != nil:
		return scheme + "://" + addr
	}
	return addr
}

// settings returns what an endpoint has beyond the other columns, by the names of the tables, or a dash.
func (e *Endpoint) settings() string {
	var list []string
	add := func(there bool, name string, value any) {
		if there {
			list = append(list, fmt.Sprintf("%s=%v", name, value))
		}
	}
	if t := e.TLS; t != nil {
		add(t.CA != "", "tls_ca", errtext.Name(t.CA))
		add(t.Cert != "", "tls_cert", errtext.Name(t.Cert))
		add(t.Key != "", "tls_key", errtext.Name(t.Key))
		add(t.ServerName != "", "tls_server_name", errtext.Name(t.ServerName))
	}
	cache, replicas, sentinel := e.Policy.Cache, e.Policy.Replicas, e.Policy.Sentinel
	add(cache.Mode != CacheOff, "cache", cache.Mode)
	add(cache.Mode != CacheOff, "cache_max_bytes", cache.MaxBytes)
	add(cache.Mode != CacheOff, "cache_max_age_ms", cache.MaxAge.Milliseconds())
	add(cache.Required, "cache_require", true)
	add(cache.Mode.Tracked(), "tracking_max_silence_ms", cache.MaxSilence.Milliseconds())
	add(replicas.ReadFrom != ReadMaster, "read_from", replicas.ReadFrom)
	add(replicas.MaxLagBytes > 0, "replica_max_lag_bytes", replicas.MaxLagBytes)
	add(sentinel.Username != "", "sentinel_username", sentinel.Username)
	add(!sentinel.Password.IsZero(), "sentinel_password", sentinel.Password)
	add(sentinel.Plain, "sentinel_tls", false)
	if list == nil {
		return "-"
	}
	return strings.Join(list, " ")
}

// defaultText returns a default as JSON, or a dash.
func defaultText(value any) string {
	if value == nil {
		return "-"
	}
	text, _ := jsonv2.Marshal(value) // Unlike its elder it leaves "<" as it is; every default can be written.
	return string(text)
}

func yes(b bool) string {
	if b {
		return "yes"
	}
	return "no"
}
