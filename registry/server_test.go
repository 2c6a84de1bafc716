package registry_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rankd/rankd/registry"
)

func TestParseServer(t *testing.T) {
	const ipv6 = "[::1]:1"
	secret := registry.NewSecret
	tcp := func(host string, port int) registry.Server { return registry.Server{Host: host, Port: port} }
	for text, want := range map[string]struct {
		server registry.Server
		addr   string
	}{
		"127.0.0.1:6379":          {tcp("127.0.0.1", 6379), "127.0.0.1:6379"},
		ipv6:                      {tcp("::1", 1), ipv6},
		"my_redis.example.:65535": {tcp("my_redis.example.", 65535), "my_redis.example.:65535"},
		"redis:7000":              {tcp("redis", 7000), "redis:7000"},
		"redis://h":               {tcp("h", 6379), "h:6379"},
		"REDIS://h:1/":            {tcp("h", 1), "h:1"},
		"redis://" + ipv6:         {tcp("::1", 1), ipv6},
		"redis://[::1]":           {tcp("::1", 6379), "[::1]:6379"},
		"redis://h:1/0":           {registry.Server{Host: "h", Port: 1, HasDatabase: true}, "h:1"},
		"redis://h:1?db=7":        {registry.Server{Host: "h", Port: 1, Database: 7, HasDatabase: true}, "h:1"},
		"redis://:pw@h/3":         {registry.Server{Host: "h", Port: 6379, Password: secret("pw"), Database: 3, HasDatabase: true}, "h:6379"},
		"redis://u:p%40%2F@h:1":   {registry.Server{Host: "h", Port: 1, Username: "u", Password: secret("p@/")}, "h:1"},
		"redis://u:p@q@h:1":       {registry.Server{Host: "h", Port: 1, Username: "u", Password: secret("p@q")}, "h:1"},
		"redis://h:1?username=u&password=p": {registry.Server{Host: "h", Port: 1, Username: "u", Password: secret("p")},
			"h:1"},
		"redis://u@h:1?password_file=/run/pw": {registry.Server{Host: "h", Port: 1, Username: "u", Password: registry.Secret{File: "/run/pw"}},
			"h:1"},
		"redis://h:1?password_env=PW": {registry.Server{Host: "h", Port: 1, Password: registry.Secret{Env: "PW"}}, "h:1"},
		"redis+cluster://h1:7000,h2,[::1]:7002": {registry.Server{Host: "h1", Port: 7000, Cluster: true, Others: "h2:6379,[::1]:7002"},
			"h1:7000,h2:6379,[::1]:7002"},
		"Redis+Cluster://u:p@h/0": {registry.Server{Host: "h", Port: 6379, Username: "u", Password: secret("p"), Cluster: true, HasDatabase: true},
			"h:6379"},
		"redis+cluster://u:p,%40@h,g:1?db=0": {registry.Server{
			Host: "h", Port: 6379, Username: "u", Password: secret("p,@"), Cluster: true, Others: "g:1", HasDatabase: true,
		}, "h:6379,g:1"},
		"Rediss://h": {registry.Server{Host: "h", Port: 6379, TLS: &registry.TLS{}}, "h:6379"},
		"rediss://u:p@h:1/2?tls_ca=/ca.pem&tls_cert=/c.pem&tls_key=/k.pem&tls_server_name=redis.example.com": {registry.Server{
			Host: "h", Port: 1, Username: "u", Password: secret("p"), Database: 2, HasDatabase: true,
			TLS: &registry.TLS{CA: "/ca.pem", Cert: "/c.pem", Key: "/k.pem", ServerName: "redis.example.com"},
		}, "h:1"},
		"rediss+cluster://h,g:1?tls_ca=/ca.pem": {registry.Server{Host: "h", Port: 6379, Cluster: true, Others: "g:1", TLS: &registry.TLS{CA: "/ca.pem"}}, "h:6379,g:1"},
		"redis+sentinel://h1:7000,h2/my.master": {registry.Server{Host: "h1", Port: 7000, Others: "h2:26379", Master: "my.master"}, "h1:7000,h2:26379"},
		"Redis+Sentinel://u:p@h/m_1-x/3": {registry.Server{
			Host: "h", Port: 26379, Username: "u", Password: secret("p"), Master: "m_1-x", Database: 3, HasDatabase: true,
		}, "h:26379"},
		"redis+sentinel://h/m?db=2&password_env=PW": {registry.Server{
			Host: "h", Port: 26379, Password: registry.Secret{Env: "PW"}, Master: "m", Database: 2, HasDatabase: true,
		}, "h:26379"},
		"redis+cluster://h,g:1?read_from=replica&replica_max_lag_bytes=1000": {registry.Server{
			Host: "h", Port: 6379, Cluster: true, Others: "g:1", Replicas: registry.Replicas{ReadFrom: registry.ReadReplica, MaxLagBytes: 1000},
		}, "h:6379,g:1"},
		"redis+cluster://h?read_from=nearest": {registry.Server{Host: "h", Port: 6379, Cluster: true, Replicas: registry.Replicas{ReadFrom: registry.ReadNearest}}, "h:6379"},
		"redis+cluster://h?read_from=master":  {registry.Server{Host: "h", Port: 6379, Cluster: true}, "h:6379"},
		"redis+sentinel://u:p@h/m?sentinel_username=s&sentinel_password_file=/run/s": {registry.Server{
			Host: "h", Port: 26379, Username: "u", Password: secret("p"), Master: "m", Sentinel: registry.Sentinel{Username: "s", Password: registry.Secret{File: "/run/s"}},
		}, "h:26379"},
		"redis+sentinel://h/m?sentinel_password_env=PW": {registry.Server{Host: "h", Port: 26379, Master: "m", Sentinel: registry.Sentinel{Password: registry.Secret{Env: "PW"}}}, "h:26379"},
		"rediss+sentinel://h/m?sentinel_tls=false&sentinel_password=s": {registry.Server{
			Host: "h", Port: 26379, Master: "m", TLS: &registry.TLS{}, Sentinel: registry.Sentinel{Plain: true, Password: secret("s")},
		}, "h:26379"},
		"rediss+sentinel://h/m?sentinel_tls=true": {registry.Server{Host: "h", Port: 26379, Master: "m", TLS: &registry.TLS{}}, "h:26379"},
		"unix:///run/redis.sock":                  {registry.Server{Socket: "/run/redis.sock"}, "unix:/run/redis.sock"},
		"unix:/run/redis.sock":                    {registry.Server{Socket: "/run/redis.sock"}, "unix:/run/redis.sock"},
		"unix:///a%20b":                           {registry.Server{Socket: "/a b"}, "unix:/a b"},
		"unix:////run/r":                          {registry.Server{Socket: "/run/r"}, "unix:/run/r"},
		"unix://u:p@/run/r?db=2": {registry.Server{Socket: "/run/r", Username: "u", Password: secret("p"), Database: 2, HasDatabase: true},
			"unix:/run/r"},
		"unix:///run/r?username=u&password=p": {registry.Server{Socket: "/run/r", Username: "u", Password: secret("p")}, "unix:/run/r"},
	} {
		got, err := registry.ParseServer(text)
		require.NoError(t, err, text)
		assert.Equal(t, want.server, got, text)
		assert.Equal(t, want.addr, got.Addr(), text)
		assert.Equal(t, got == tcp(got.Host, got.Port) && got.Socket == "", got.Plain(), text)
		_, err = registry.ParseOneServer(text)
		assert.Equal(t, got.Cluster || got.Master != "", err != nil, text)
	}
}

// canary stands for a password in texts that must not show it.
const canary = "c4n4ry"

// An error about an address quotes nothing of it, since a password may be in any part.
func TestParseServerErrors(t *testing.T) {
	for text, want := range map[string]string{
		"":                                             "host or port is missing",
		"localhost":                                    "host or port is missing",
		"::1:6379":                                     "host or port is missing",
		":6379":                                        "port is not a number from 1 to 65535",
		"h:0":                                          "port is not a number from 1 to 65535",
		"h:65536":                                      "port is not a number from 1 to 65535",
		"h:c4n4ry":                                     "port is not a number from 1 to 65535",
		"u:c4n4ry@h:6379":                              "host or port is missing",
		":c4n4ry@h":                                    "port is not a number",
		"a\x00b:6379":                                  "must be a host name or an IP address",
		"a b:6379":                                     "must be a host name or an IP address",
		"c4n4ry@h:6379":                                "must be a host name or an IP address",
		"256.0.0.1:6379":                               "must be a host name or an IP address",
		strings.Repeat("x", 64) + ":6379":              "must be a host name or an IP address",
		"redisss://u:c4n4ry@h:6379":                    "the scheme must be redis://, redis+cluster://",
		"redis://u:c4n4ry@h?tls_ca=/a":                 "needs TLS: rediss://",
		"rediss://u:c4n4ry@h?tls_cert=/a":              "tls_cert and tls_key need each other",
		"rediss://u:c4n4ry@h?tls_key=/a":               "tls_cert and tls_key need each other",
		"rediss://h?tls_ca=/a&tls_ca=/b":               "at most once",
		"http://u:c4n4ry@h:6379":                       "the scheme must be redis://, redis+cluster://, redis+sentinel:// or unix://",
		"c4n4ry://h":                                   "the scheme must be redis://, redis+cluster://, redis+sentinel:// or unix://",
		"redis://u:c4n/4ryc4n4ry@h:6379":               "malformed",
		"redis://u:c4n4ry#x@h:6379":                    "malformed",
		"redis://u:12#c4n4ry@h:6379":                   "malformed",
		"redis://u:12/c4n4ry@h:6379":                   "the database must be a number",
		"redis://u:12?c4n4ry@h:6379":                   "after ? there are db",
		"redis://u:%zzc4n4ry@h:6379":                   "malformed",
		"redis://u:c4n4ry\x7f@h":                       "malformed",
		"redis://u:c4n4ry@[::1":                        "malformed",
		"redis://u:c4n4ry@h:0":                         "port is not a number from 1 to 65535",
		"redis://u:c4n4ry@h:":                          "port is not a number from 1 to 65535",
		"redis://u:c4n4ry@":                            "host is missing",
		"redis://u:c4n4ry@:6379":                       "host is missing",
		"redis://u:c4n4ry@a b":                         "malformed",
		"redis://u:c4n4ry@256.0.0.1":                   "must be a host name or an IP address",
		"redis://u:c4n4ry@h/x":                         "the database must be a number",
		"redis://u:c4n4ry@h/-1":                        "the database must be a number",
		"redis://u:c4n4ry@h/65537":                     "the database must be a number",
		"redis://u:c4n4ry@h/1?db=1":                    "the database must be a number from 0 to 65536, once",
		"redis://h?db=1&db=2":                          "at most once",
		"redis://h?db=":                                "at most once",
		"redis://h?dial_timeout=3":                     "after ? there are db",
		"redis://h?password=c4n4ry%":                   "malformed",
		"redis://c4n4ry@h":                             "a username needs a password",
		"redis://u:c4n4ry@h?username=v":                "given twice",
		"redis://u:c4n4ry@h?password=x":                "given twice",
		"redis://h?password=c4n4ry&password_env=X":     "given twice",
		"unix://run/c4n4ry.sock":                       "a unix socket needs an absolute path",
		"unix://u:c4n4ry@h/run/redis.sock":             "a unix socket needs an absolute path",
		"unix://":                                      "a unix socket needs an absolute path",
		"unix:///run/":                                 "a unix socket needs an absolute path",
		"unix:///a%00b":                                "a unix socket needs an absolute path",
		"unix:///a%2520b":                              "a unix socket needs an absolute path without %",
		"unix:///a%3Fdb=1":                             "a unix socket needs an absolute path without %",
		"unix:///a%23b":                                "a unix socket needs an absolute path without %",
		"unix:c4n4ry":                                  "malformed",
		"unix:///" + strings.Repeat("x", 120):          "a unix socket needs an absolute path",
		"redis+cluster://u:c4n4ry@h,":                  "redis+cluster:// and redis+sentinel:// name at most 16 nodes",
		"redis+cluster://u:c4n4ry@h,a b":               "redis+cluster:// and redis+sentinel:// name at most 16 nodes",
		"redis+cluster://h" + strings.Repeat(",h", 16): "redis+cluster:// and redis+sentinel:// name at most 16 nodes",
		"redis+cluster://,h":                           "host is missing",
		"redis+cluster:h":                              "port is not a number",
		"redis+cluster://u:c4n4ry@h/1":                 "a Redis Cluster has only database 0",
		"redis+cluster://h,h?db=2":                     "a Redis Cluster has only database 0",
		"redis+cluster://u:12/c4n4ry@h,g":              "the database must be a number",
		"redis+sentinel://u:c4n4ry@h":                  "names the master as /name",
		"redis+sentinel://u:c4n4ry@h/":                 "names the master as /name",
		"redis+sentinel://u:c4n4ry@h/a%20b":            "names the master as /name",
		"redis+sentinel://h,c4n4ry@/m":                 "host is missing",
		"redis+sentinel://u:c4n4ry@h/m/x":              "the database must be a number",
		"redis+sentinel://u:c4n4ry@h/m/1?db=2":         "the database must be a number",
		"redis+cluster://u:c4n4ry@h?read_from=c4n4ry":  "read_from must be master, replica or nearest",
		"redis+cluster://u:c4n4ry@h?read_from=replica&replica_max_lag_bytes=0":  "replica_max_lag_bytes must be 1 to",
		"redis+cluster://u:c4n4ry@h?read_from=replica&replica_max_lag_bytes=x":  "replica_max_lag_bytes must be 1 to",
		"redis+cluster://u:c4n4ry@h?replica_max_lag_bytes=5":                    "needs read_from replica or nearest",
		"redis://u:c4n4ry@h?read_from=replica":                                  "needs a Redis Cluster",
		"redis+sentinel://u:c4n4ry@h/m?read_from=replica":                       "or of one that sentinels know, are not read",
		"redis://u:c4n4ry@h?sentinel_password=c4n4ry":                           "needs a master that sentinels know",
		"redis+cluster://u:c4n4ry@h?sentinel_username=c4n4ry":                   "needs a master that sentinels know",
		"redis+sentinel://u:c4n4ry@h/m?sentinel_username=c4n4ry":                "sentinel_username needs a sentinel_password",
		"redis+sentinel://h/m?sentinel_password=c4n4ry&sentinel_password_env=A": "given twice",
		"redis+sentinel://h/m?sentinel_tls=false&password=c4n4ry":               "sentinel_tls needs TLS",
		"redis+sentinel://h/m?sentinel_tls=true&password=c4n4ry":                "sentinel_tls needs TLS",
		"rediss+sentinel://h/m?sentinel_tls=c4n4ry":                             "sentinel_tls must be true or false",
		"redis://u:c4n4ry@h/1/2":                                                "the database must be a number",
		"redis:///1?password=" + canary:                                         "host is missing",
		"redis://u:c4n4ry@h1,h2:6379":                                           "must be a host name or an IP address",
		"redis://h?password_file=/a&password_env=" + canary:                     "given twice",
	} {
		got, err := registry.ParseServer(text)
		require.ErrorContains(t, err, want, text)
		assert.NotContains(t, err.Error(), canary, text)
		assert.Less(t, len(err.Error()), 250)
		assert.Zero(t, got)
	}
}

func FuzzParseServer(f *testing.F) {
	for _, seed := range []string{"h:1", "redis://u:p@h:1/2?db=3", "unix://u:p@/run/r.sock?db=2", "uniX://0:0@//0", "uniX:////0", "unix:///a%2520b", "unix:///a%3Fdb=1", "redis://h?password_env=A&username=b", "rediss://x", "redis+cluster://u:p@h,g:1/0?db=1", "redis+sentinel://u:p@h,g:1/m/2", "rediss+sentinel://h/m?sentinel_password=a&sentinel_tls=false", "redis+cluster://h?read_from=nearest&replica_max_lag_bytes=9"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		s, err := registry.ParseServer(text)
		if err != nil {
			require.Zero(t, s)
			// Every text has one of a few errors, so none can contain a password.
			require.Less(t, len(err.Error()), 250)
			return
		}
		addr := s.Addr()
		if s.Cluster {
			addr = "redis+cluster://" + addr
		}
		if s.Master != "" {
			addr = "redis+sentinel://" + addr + "/" + s.Master
		}
		again, err := registry.ParseServer(addr)
		require.NoError(t, err, "an address is one that rankd reads")
		require.Equal(t, s.Addr(), again.Addr())
		require.True(t, again.Plain() || again.Socket != "" || again.Cluster || again.Master != "")
		require.False(t, s.Username != "" && s.Password.IsZero())
	})
}

// TestServersOfAllEnvironments: a server agrees with a table that has the same address and database, however either
// says so, and who logs in does not matter.
func TestServersOfAllEnvironments(t *testing.T) {
	for _, c := range []struct{ endpoint, server, elsewhere string }{
		{`url = "redis://h:6379"`, "h:6379", ""},
		{`url = "redis://u:c4n4ry@h:6379"`, "redis://h", ""},
		{`url = "redis://h/2"`, "h:6379", ""}, // The database of the table stays.
		{`url = "redis://h/2"`, "redis://h/2", ""},
		{`url = "redis://h/2"`, "redis://x:c4n4ry@h/1", "h:6379 database 1 is not where endpoints.prod.toml has endpoint ep_1, which is h:6379 database 2"},
		{`url = "redis://h"`, "h:1", "h:1 is not where endpoints.prod.toml has endpoint ep_1, which is h:6379"},
		{`url = "redis://u:c4n4ry@h"`, "i:6379", "i:6379 is not where"},
		{`url = "rediss://h"`, "h:6379", "which is rediss://h:6379"},
		{`url = "redis+cluster://h,i"`, "redis+cluster://h,i", ""},
		{`url = "redis+cluster://h,i"`, "h:6379", "which is redis+cluster://h:6379,i:6379"},
		{`url = "redis+sentinel://h/m"`, "redis+sentinel://h/n", "redis+sentinel://h:26379/n is not where"},
		{`url = "unix:///s"`, "unix:///s", ""},
		{"kind = \"http\"\nurl = \"http://h:1/p?token=c4n4ry\"", "i:6379", ""},
	} {
		row := "[[endpoint]]\nid = \"ep_1\"\nname = \"one\"\n" + c.endpoint
		if !strings.Contains(row, "kind") {
			row += "\nkind = \"redis\""
		}
		row += "\n[endpoint.policy]\nmax_inflight = 1\nconnect_timeout_ms = 1\nrequest_timeout_ms = 1\n"
		r, err := registry.Load(tables(map[string]string{"endpoints.dev.toml": row, "endpoints.test.toml": row, "endpoints.prod.toml": row}), "prod")
		require.NoError(t, err, c.endpoint)
		server, err := registry.ParseServer(c.server)
		require.NoError(t, err)
		err = r.RedisElsewhere(server)
		if c.elsewhere == "" {
			assert.NoError(t, err, c)
			continue
		}
		assert.ErrorContains(t, err, c.elsewhere)
		assert.NotContains(t, err.Error(), "c4n4ry")
	}
}
