package cli

import (
	"fmt"
	"os"

	"github.com/spf13/pflag"

	"github.com/rpcrdma/toolkit/decode/krb5"
	"github.com/rpcrdma/toolkit/internal/outfile"
	"github.com/rpcrdma/toolkit/internal/units"
)

// KeytabFlag adds --keytab to the flags of a command.
func KeytabFlag(f *pflag.FlagSet, name *string) {
	f.StringVar(name, "keytab", "", "decrypt what Kerberos protects with the keys in this `file`: the keytab of the NFS server (default: the environment variable KRB5_KTNAME, if it is set)")
}

// Keys are the contexts of a capture, and the keytab that opens them.
type Keys struct {
	*krb5.Contexts
	tab     *krb5.Keytab // nil: none
	problem error        // with the keytab of the environment
}

// Keytab reports whether there is one.
func (k *Keys) Keytab() bool { return k.tab != nil }

// LoadKeys reads the keytab of --keytab, or that of KRB5_KTNAME. The user did not
// name the latter in this call: if it cannot be read, Notes mentions it only where it
// would have helped.
func LoadKeys(name string) (*Keys, error) {
	k := &Keys{}
	var tab *krb5.Keytab
	path, err := keytabPath(name)
	if err == nil && path != "" {
		tab, err = krb5.LoadKeytab(path)
	}
	if name != "" && err != nil {
		return nil, fmt.Errorf("--keytab: %w", err)
	}
	k.problem = err
	k.tab = tab
	k.Contexts = krb5.New(tab, krb5.Options{})
	return k, nil
}

// Again returns the same keys for another pass over the packets, which nothing is known of yet.
func (k *Keys) Again() *Keys { return &Keys{Contexts: krb5.New(k.tab, krb5.Options{}), tab: k.tab} }

// keytabPath is the file of --keytab, or that of KRB5_KTNAME; "" if there is
// neither.
func keytabPath(name string) (string, error) {
	env := os.Getenv("KRB5_KTNAME")
	if name != "" || env == "" {
		return name, nil
	}
	return krb5.FromEnvironment(env)
}

// ClaimKeytab notes the keytab that LoadKeys reads, so that it is not written.
func ClaimKeytab(files *outfile.Files, name string) {
	if path, err := keytabPath(name); err == nil && path != "" {
		files.Reads(path)
	}
}

// Notes tells what was not opened, and what would open it.
func (k *Keys) Notes(printf func(format string, args ...any)) {
	s := k.Summary()
	if s.Closed > 0 {
		why := ""
		switch {
		case k.tab != nil:
			why = s.Problem
		case s.Service != "":
			why = fmt.Sprintf("--keytab FILE with the key of %s (kvno %d, %v) would open %s",
				s.Service, s.KVNO, s.EType, map[bool]string{true: "it", false: "the first of them"}[s.Closed == 1])
		default:
			why = "no --keytab can open them: their tokens are not Kerberos tokens, or are cut"
		}
		printf("note: %s not opened: %s", units.Plural(s.Closed, "Kerberos context"), why)
		if k.problem != nil {
			printf("note: KRB5_KTNAME: %v", k.problem)
		}
	}
	if s.Unknown > 0 {
		printf("note: %s not opened: their creation was not captured, so no keytab can open them", units.Plural(s.Unknown, "Kerberos context"))
	}
	if s.Refused > 0 {
		printf("note: %d transactions with a wrong or malformed Kerberos checksum", s.Refused)
	}
	if s.Evicted > 0 {
		printf("note: %s forgotten for lack of memory", units.Plural(s.Evicted, "Kerberos context"))
	}
}
