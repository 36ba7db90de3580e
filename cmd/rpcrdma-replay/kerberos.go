package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/pflag"

	"github.com/rpcrdma/toolkit/cmd/internal/cli"
	"github.com/rpcrdma/toolkit/decode/krb5"
	"github.com/rpcrdma/toolkit/decode/oncrpc"
	"github.com/rpcrdma/toolkit/internal/outfile"
	"github.com/rpcrdma/toolkit/internal/printable"
	"github.com/rpcrdma/toolkit/replay/gss"
	"github.com/rpcrdma/toolkit/replay/gss/accept"
	"github.com/rpcrdma/toolkit/replay/gss/login"
	"github.com/rpcrdma/toolkit/replay/transport"
	"github.com/rpcrdma/toolkit/replay/workload"
)

// flavors are the names of the security flavors, as in sec= of mount.nfs.
var flavors = map[string]oncrpc.Flavor{
	"sys": oncrpc.AuthSys, "none": oncrpc.AuthNone, "krb5": oncrpc.PseudoKrb5, "krb5i": oncrpc.PseudoKrbI, "krb5p": oncrpc.PseudoKrbP,
}

// loginFlags are the flags of a client with Kerberos.
type loginFlags struct {
	sec       string
	ccache    string
	keytab    string
	principal string
	service   string
}

func (o *loginFlags) flags(f *pflag.FlagSet) {
	f.StringVar(&o.sec, "sec", "sys", "`flavor` of all calls: sys (with the captured users), krb5, krb5i or krb5p (as one Kerberos principal)")
	f.StringVar(&o.ccache, "ccache", "", "credential `cache` with a Kerberos ticket (default: the environment variable KRB5CCNAME, or /tmp/krb5cc_UID)")
	f.StringVar(&o.keytab, "client-keytab", "", "`file` with a key of the client, to get tickets with instead")
	f.StringVar(&o.principal, "principal", "", "`name` of the client, if the keytab has keys of several")
	f.StringVar(&o.service, "service", "", "`principal` of the server (default nfs/HOST)")
}

// ticketing is how calls are protected, and with which credentials.
type ticketing struct {
	sec     string
	service oncrpc.Service
	login   *login.Login // nil: AUTH_SYS
}

// open reads the cache or the keytab. server is HOST or HOST:PORT.
func (o *loginFlags) open(server string) (*ticketing, error) {
	t := &ticketing{sec: o.sec}
	f, ok := flavors[o.sec]
	switch {
	case !ok || f == oncrpc.AuthNone:
		return nil, cli.Usagef("--sec is sys, krb5, krb5i or krb5p, not %q", o.sec)
	case f == oncrpc.AuthSys && (o.ccache != "" || o.keytab != "" || o.principal != "" || o.service != ""):
		return nil, cli.Usagef("--ccache, --client-keytab, --principal and --service are of --sec krb5, krb5i and krb5p")
	case f == oncrpc.AuthSys:
		return t, nil
	case server == "builtin":
		return nil, cli.Usagef("the built-in server has no key: start one with rpcrdma-replay serve --keytab FILE --sec %s, and name its address", o.sec)
	case o.ccache != "" && o.keytab != "":
		return nil, cli.Usagef("--ccache and --client-keytab exclude each other")
	}
	t.service = oncrpc.ServiceNone + oncrpc.Service(f-oncrpc.PseudoKrb5)
	opt := login.Options{Cache: o.ccache, Keytab: o.keytab, Principal: o.principal, Service: o.service, Config: os.Getenv("KRB5_CONFIG")}
	if opt.Cache == "" {
		opt.Cache = os.Getenv("KRB5CCNAME")
	}
	if opt.Cache == "" {
		opt.Cache = "/tmp/krb5cc_" + strconv.Itoa(os.Getuid())
	}
	if opt.Service == "" {
		host, _, err := net.SplitHostPort(server)
		if err != nil {
			host = server
		}
		if strings.ContainsRune(host, ':') || net.ParseIP(host) != nil {
			return nil, cli.Usagef("Kerberos knows servers by name: name the server's host instead of %s, or its principal with --service nfs/HOST", host)
		}
		opt.Service = "nfs/" + host
	}
	var err error
	t.login, err = login.New(opt)
	return t, err
}

// claim registers the input files, so that none of them is overwritten.
func (o *loginFlags) claim(files *outfile.Files) {
	for _, name := range []string{o.keytab, o.ccache, os.Getenv("KRB5CCNAME")} {
		if name != "" {
			files.Reads(strings.TrimPrefix(name, "FILE:"))
		}
	}
}

// requester protects the calls of a connection.
func (t *ticketing) requester(ctx context.Context, r transport.Requester, version uint32) (transport.Requester, error) {
	if t.login == nil {
		return r, nil
	}
	g, err := gss.New(ctx, r, gss.Options{Service: t.service, Tickets: t.login.Ticket, Program: 100003, Version: version})
	if err != nil {
		return nil, errors.Join(fmt.Errorf("--sec %s: %w", t.sec, err), r.Close())
	}
	return g, nil
}

// preview adds the notes to the preview.
func (t *ticketing) preview(w io.Writer, load *workload.Workload, layout bool) error {
	for _, n := range t.notes(load, layout) {
		if _, err := fmt.Fprintf(w, "note: %s\n", n); err != nil {
			return err
		}
	}
	return nil
}

// notes explains what a flavor means for the comparison with the capture.
func (t *ticketing) notes(load *workload.Workload, layout bool) (notes []string) {
	users, captured := 0, map[string]bool{}
	for i := range load.Tables.Credentials {
		if f := load.Tables.Credentials[i].Flavor; f == "gss" {
			captured["Kerberos"] = true
			users++
		} else if f == "sys" {
			captured["sys"] = true
			users++
		}
	}
	were := strings.Join(slices.Sorted(maps.Keys(captured)), " and ")
	switch {
	case t.login == nil:
		if captured["Kerberos"] {
			notes = append(notes, "sec=sys: calls that were captured with Kerberos are sent with AUTH_SYS, data in separate chunks: chunks, sizes and permissions may differ from the capture")
		}
		return notes
	case users > 1:
		notes = append(notes, fmt.Sprintf("sec=%s: %s stands for all %d users of the capture: permissions may differ", t.sec, t.login.Client(), users))
	default:
		notes = append(notes, fmt.Sprintf("sec=%s: all calls are made as %s", t.sec, t.login.Client()))
	}
	if t.service == oncrpc.ServiceNone {
		return notes
	}
	what := "sec=" + t.sec + ": data are part of the protected call or reply, so they have no separate chunks; long messages use a Position-Zero Read chunk or a Reply chunk"
	if captured["sys"] {
		what += ", unlike in the capture (" + were + ")"
	}
	notes = append(notes, what)
	if layout {
		notes = append(notes, "sec="+t.sec+": --layout captured has no effect")
	}
	return notes
}

// serverFlags are the flags of a server with Kerberos.
type serverFlags struct {
	keytab string
	sec    []string
	users  string

	principals []string // of the keytab
	preferred  string   // the first of sec
}

func isNFS(principal string) bool { return strings.HasPrefix(principal, "nfs/") }

// hint is the mount option and the server name for clients; empty without Kerberos.
func (o *serverFlags) hint() (option, host string) {
	if flavors[o.preferred] < oncrpc.PseudoKrb5 {
		return "", ""
	}
	if i := slices.IndexFunc(o.principals, isNFS); i >= 0 {
		host, _, _ = strings.Cut(strings.TrimPrefix(o.principals[i], "nfs/"), "@")
	}
	return ",sec=" + o.preferred, printable.Line(host)
}

func (o *serverFlags) flags(f *pflag.FlagSet) {
	f.StringVar(&o.keytab, "keytab", "", "keytab `file` with the key of this server, nfs/HOST, for Kerberos")
	f.StringSliceVar(&o.sec, "sec", nil, "`flavors` that the files may be used with, the preferred ones first: sys, none, krb5, krb5i, krb5p (default sys,none; with --keytab krb5p,krb5i,krb5)")
	f.StringVar(&o.users, "users", "", "`file` with lines of a Kerberos principal, a user id and group ids (default: the users of this machine, for names in the realm of the keytab; others are nobody)")
}

// reads are the files that are read.
func (o *serverFlags) reads() (names []string) {
	for _, name := range []string{o.keytab, o.users} {
		if name != "" {
			names = append(names, strings.TrimPrefix(name, "FILE:"))
		}
	}
	return names
}

// options turns the flags into options of a server.
func (o *serverFlags) options(s *cli.Streams) (k accept.Options, list []oncrpc.Flavor, err error) {
	names := o.sec
	if len(names) == 0 && o.keytab != "" {
		names = []string{"krb5p", "krb5i", "krb5"}
	}
	for _, n := range names {
		f, ok := flavors[n]
		switch {
		case !ok:
			return k, nil, cli.Usagef("--sec: %q is not sys, none, krb5, krb5i or krb5p", n)
		case slices.Contains(list, f):
			return k, nil, cli.Usagef("--sec: %s is there twice", n)
		case f >= oncrpc.PseudoKrb5 && o.keytab == "":
			return k, nil, cli.Usagef("--sec %s needs a --keytab", n)
		}
		list = append(list, f)
	}
	if o.keytab == "" {
		if o.users != "" {
			return k, nil, cli.Usagef("--users is of --keytab")
		}
		return k, list, nil
	}
	if k.Keytab, err = krb5.LoadKeytab(o.keytab); err != nil {
		return k, nil, fmt.Errorf("--keytab: %w", err)
	}
	o.principals, o.preferred = k.Keytab.Principals(), names[0]
	if !slices.ContainsFunc(o.principals, isNFS) {
		cli.Tell(s.Err, "rpcrdma-replay", "note: --keytab has no key of nfs/HOST, which NFS clients ask for: it has those of %s", printable.Line(strings.Join(o.principals, ", ")))
	}
	k.Users = accept.Local{}
	if o.users != "" {
		if k.Users, err = accept.LoadList(o.users); err != nil {
			return k, nil, fmt.Errorf("--users: %w", err)
		}
	}
	k.Log = func(format string, args ...any) { cli.Tell(s.Err, "rpcrdma-replay", format, args...) }
	return k, list, nil
}
