package queue

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
)

// Address is where a NATS server is, and as whom to go there. What is empty is taken from the environment, as the
// nats command does it: NATS_URL, NATS_CREDS, NATS_NKEY, NATS_USER, NATS_PASSWORD, NATS_CA, NATS_CERT, NATS_KEY; or
// from a context file that NATS_CONTEXT or Context names, or that "nats context select" chose.
type Address struct {
	Servers string // URLs with commas between them
	Creds   string // file with a JWT and its key
	NKey    string // file with a seed
	User    string
	Pass    string
	Token   string
	CA      string // file with certificates that sign the server's
	Cert    string // file with the own certificate
	Key     string // file with its key
	Context string // name of a context of the nats command
}

// contextFile is the part of a context file of the nats command that concerns connecting.
type contextFile struct {
	URL   string `json:"url"`
	Token string `json:"token"`
	User  string `json:"user"`
	Pass  string `json:"password"`
	Creds string `json:"creds"`
	NKey  string `json:"nkey"`
	CA    string `json:"ca"`
	Cert  string `json:"cert"`
	Key   string `json:"key"`
}

// Resolve completes the address: what was given counts most, then the environment, then the context file. An
// identity is never put together from two of them.
func (a Address) Resolve(getenv func(string) string) (Address, error) {
	env := Address{
		Servers: getenv("NATS_URL"), Creds: getenv("NATS_CREDS"), NKey: getenv("NATS_NKEY"), User: getenv("NATS_USER"), Pass: getenv("NATS_PASSWORD"),
		CA: getenv("NATS_CA"), Cert: getenv("NATS_CERT"), Key: getenv("NATS_KEY"), Context: getenv("NATS_CONTEXT"),
	}
	if env.Pass == "" && env.User != "" { // NATS_USER without a password is a token
		env.Token, env.User = env.User, ""
	}
	a = a.orElse(env)
	if a.Context == "" && a.Servers != "" {
		return a, nil // a selected context is for those who name no server
	}
	c, err := readContext(contextDir(getenv), a.Context)
	if err != nil {
		return a, err
	}
	a = a.orElse(c)
	if a.Servers == "" {
		return a, errors.New("no NATS server is given: use --nats, NATS_URL or a context of the nats command")
	}
	return a, nil
}

// orElse completes an address by another.
func (a Address) orElse(b Address) Address {
	if a.Servers == "" {
		a.Servers = b.Servers
	}
	if a.Creds == "" && a.NKey == "" && a.User == "" && a.Token == "" {
		a.Creds, a.NKey, a.User, a.Pass, a.Token = b.Creds, b.NKey, b.User, b.Pass, b.Token
	}
	if a.CA == "" {
		a.CA = b.CA
	}
	if a.Cert == "" {
		a.Cert, a.Key = b.Cert, b.Key
	}
	if a.Context == "" {
		a.Context = b.Context
	}
	return a
}

func contextDir(getenv func(string) string) string {
	if d := getenv("XDG_CONFIG_HOME"); d != "" {
		return filepath.Join(d, "nats")
	}
	home := getenv("HOME")
	if home == "" {
		return ""
	}
	return filepath.Join(home, ".config", "nats")
}

// readContext reads a context of the nats command; without a name, the selected one, if there is one.
func readContext(dir, name string) (Address, error) {
	if dir == "" {
		return Address{}, nil
	}
	if name == "" {
		b, err := os.ReadFile(filepath.Join(dir, "context.txt"))
		if err != nil {
			return Address{}, nil //nolint:nilerr // none is selected
		}
		if name = strings.TrimSpace(string(b)); name == "" {
			return Address{}, nil
		}
	}
	if name != filepath.Base(name) || name == ".." || name == "." {
		return Address{}, fmt.Errorf("%q is not the name of a NATS context", name)
	}
	file := filepath.Join(dir, "context", name+".json")
	b, err := os.ReadFile(file)
	if err != nil {
		return Address{}, fmt.Errorf("NATS context: %w", err)
	}
	var c contextFile
	if err := json.NewDecoder(bytes.NewReader(b)).Decode(&c); err != nil {
		return Address{}, fmt.Errorf("NATS context %s: %w", file, err)
	}
	return Address{Servers: c.URL, Token: c.Token, User: c.User, Pass: c.Pass, Creds: c.Creds, NKey: c.NKey, CA: c.CA, Cert: c.Cert, Key: c.Key}, nil
}

// servers are the URLs of an address. A host alone is nats://host, and after one URL the others need no scheme.
func (a Address) servers() ([]string, error) {
	var list []string
	for s := range strings.SplitSeq(a.Servers, ",") {
		s = strings.TrimSpace(s)
		if s == "" {
			continue
		}
		if !strings.Contains(s, "://") {
			s = "nats://" + s
		}
		u, err := url.Parse(s)
		if err != nil || u.Host == "" {
			return nil, errors.New("the address of a NATS server is not like nats://host:4222") // it may hold a password
		}
		if !slices.Contains([]string{"nats", "tls", "ws", "wss"}, u.Scheme) {
			return nil, fmt.Errorf("a NATS server is reached by nats://, tls://, ws:// or wss://, not %s://", u.Scheme)
		}
		list = append(list, s)
	}
	if len(list) == 0 {
		return nil, errors.New("no NATS server is given")
	}
	return list, nil
}

// redacted names the servers without passwords.
func redacted(list []string) string {
	var b []string
	for _, s := range list {
		if u, err := url.Parse(s); err == nil {
			b = append(b, u.Redacted())
		}
	}
	return strings.Join(b, ",")
}

// Dial connects. Whoever is connected stays so for good: when all servers are away it tries again, in the
// background, until it is closed. Notes are about that.
//
// The role is submitter, worker, reader or agent: replies go to InboxPrefix and the role, so that permissions keep roles
// from each other's.
func Dial(a Address, role, name string, note func(format string, args ...any)) (*nats.Conn, error) {
	list, err := a.servers()
	if err != nil {
		return nil, err
	}
	opts := []nats.Option{
		nats.Name(name), nats.CustomInboxPrefix(InboxPrefix + role), nats.Timeout(5 * time.Second), nats.SetCustomDialer(dialer{}),
		nats.MaxReconnects(-1), nats.ReconnectWait(500 * time.Millisecond), nats.ReconnectJitter(250*time.Millisecond, time.Second),
		nats.PingInterval(10 * time.Second), nats.MaxPingsOutstanding(2),
		// What is published while no server is there fails, and is tried again by those who know whether it still
		// matters.
		nats.ReconnectBufSize(-1),
		nats.DisconnectErrHandler(func(_ *nats.Conn, err error) {
			if err != nil {
				note("NATS is away: %v", err)
			}
		}),
		nats.ReconnectHandler(func(c *nats.Conn) { note("NATS is back: %s", c.ConnectedUrlRedacted()) }),
		nats.PermissionErrOnSubscribe(true),
		nats.ErrorHandler(func(_ *nats.Conn, _ *nats.Subscription, err error) { note("NATS: %v", err) }),
	}
	if a.Creds != "" {
		opts = append(opts, nats.UserCredentials(a.Creds))
	}
	if a.NKey != "" {
		o, err := nats.NkeyOptionFromSeed(a.NKey)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", a.NKey, err)
		}
		opts = append(opts, o)
	}
	if a.User != "" {
		opts = append(opts, nats.UserInfo(a.User, a.Pass))
	}
	if a.Token != "" {
		opts = append(opts, nats.Token(a.Token))
	}
	if a.CA != "" {
		opts = append(opts, nats.RootCAs(a.CA))
	}
	if (a.Cert == "") != (a.Key == "") {
		return nil, errors.New("a TLS certificate needs its key, and a key its certificate")
	}
	if a.Cert != "" {
		opts = append(opts, nats.ClientCert(a.Cert, a.Key))
	}
	if err := a.readable(); err != nil {
		return nil, err
	}
	nc, err := nats.Connect(strings.Join(list, ","), opts...)
	if err == nil {
		if err = mayBe(nc, role); err != nil {
			nc.Close()
		}
	}
	if err != nil {
		if s := err.Error(); len(s) > maxSaid {
			err = errors.New(s[:maxSaid])
		}
		return nil, fmt.Errorf("NATS at %s: %w%s", redacted(list), err, a.reason(err, time.Now()))
	}
	return nc, nil
}

// dialer connects to servers whose first line has an end.
type dialer struct{}

// Dial implements nats.CustomDialer.
func (dialer) Dial(network, address string) (net.Conn, error) {
	c, err := net.DialTimeout(network, address, 5*time.Second)
	if err != nil {
		return nil, err
	}
	return &greeted{Conn: c}, nil
}

// greeted is a connection of which the client keeps the first line, however long it is.
type greeted struct {
	net.Conn
	line  int // bytes of it
	ended bool
}

// maxInfo is how many bytes the first line has at most: it is INFO, with the addresses of all servers.
const maxInfo = 1 << 20

func (c *greeted) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	if c.ended {
		return n, err
	}
	c.line += n
	if c.ended = bytes.IndexByte(b[:n], '\n') >= 0; !c.ended && c.line > maxInfo {
		return 0, fmt.Errorf("the server's first line has more than %d bytes", maxInfo)
	}
	return n, err
}

// maxSaid is how much is shown of an error, which may be what a server says.
const maxSaid = 500

// mayBe finds out whether the user may read replies to a role. Who may not would wait for each of them in vain.
func mayBe(nc *nats.Conn, role string) error {
	s, err := nc.SubscribeSync(InboxPrefix + role + ".check")
	if err != nil {
		return err
	}
	defer func() { _ = s.Unsubscribe() }()
	err = nc.FlushTimeout(5 * time.Second) // a refusal comes before the answer to that, which may return it
	if err == nil {
		if _, refused := s.NextMsg(time.Millisecond); errors.Is(refused, nats.ErrPermissionViolation) {
			err = refused
		}
	}
	if errors.Is(err, nats.ErrPermissionViolation) {
		return fmt.Errorf("the user has no permission for %s%s.>, where the %s reads replies: %w", InboxPrefix, role, role, nats.ErrPermissionViolation)
	}
	return err
}

// ErrRefused says that NATS does not let this program in any more.
var ErrRefused = errors.New("NATS has ended the connection for good")

// Bound makes a context that ends when the connection is closed for good, because all servers refuse the user: with
// ErrRefused as its cause. a is the address that was given to Dial. The context does not end while servers are
// unreachable.
func Bound(ctx context.Context, nc *nats.Conn, a Address) (context.Context, func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	end := func(nc *nats.Conn) {
		err := cmp.Or(nc.LastError(), nats.ErrConnectionClosed)
		cancel(fmt.Errorf("%w: %w%s", ErrRefused, err, a.reason(err, time.Now())))
	}
	nc.SetClosedHandler(end)
	if nc.IsClosed() {
		end(nc)
	}
	return ctx, func() { cancel(nil) }
}

// Refused is the error of a context of Bound that has ended by ErrRefused, nil of others.
func Refused(ctx context.Context) error {
	if err := context.Cause(ctx); errors.Is(err, ErrRefused) {
		return err
	}
	return nil
}
