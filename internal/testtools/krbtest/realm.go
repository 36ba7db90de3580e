// Package krbtest makes keytabs, tickets and credential caches for tests, which hold the keys of
// both sides and so need no KDC. A library makes the tickets; the code under test does not use it
// for that.
package krbtest

import (
	"context"
	"encoding/binary"
	"strings"
	"testing"
	"time"

	"github.com/jcmturner/gokrb5/v8/keytab"
	"github.com/jcmturner/gokrb5/v8/messages"
	gokrb5 "github.com/jcmturner/gokrb5/v8/types"

	"github.com/rpcrdma/toolkit/decode/krb5"
)

// Service and Realm are the names of the service that a Realm has.
const (
	Name    = "REALM.TEST"
	Service = "nfs/server.realm.test"
)

// Realm is a service with a key.
type Realm struct {
	t     testing.TB
	etype krb5.EType
	tab   *keytab.Keytab
}

// New makes a service with a key of a type.
func New(t testing.TB, e krb5.EType) *Realm {
	t.Helper()
	r := &Realm{t: t, etype: e, tab: keytab.New()}
	if err := r.tab.AddEntry(Service, Name, "service's password "+e.String(), time.Now(), 3, int32(e)); err != nil {
		t.Fatal(err)
	}
	return r
}

// Bytes returns the service's keytab.
func (r *Realm) Bytes() []byte {
	b, err := r.tab.Marshal()
	if err != nil {
		r.t.Fatal(err)
	}
	return b
}

// Keytab is the service's keytab.
func (r *Realm) Keytab() *krb5.Keytab {
	k, err := krb5.ParseKeytab(r.Bytes())
	if err != nil {
		r.t.Fatal(err)
	}
	return k
}

// Ticket makes a ticket for a client, "alice" or "nfs/client@OTHER", from a time on.
func (r *Realm) Ticket(client string, from time.Time, life time.Duration) *krb5.Ticket {
	r.t.Helper()
	p, err := krb5.ParsePrincipal(client)
	if err != nil {
		r.t.Fatal(err)
	}
	if p.Realm == "" {
		p.Realm = Name
	}
	cname := gokrb5.PrincipalName{NameType: p.Type, NameString: p.Parts}
	sname := gokrb5.PrincipalName{NameType: 2, NameString: strings.Split(Service, "/")}
	// The library marshals times without a fraction and without a zone.
	from = from.UTC().Truncate(time.Second)
	tkt, key, err := messages.NewTicket(cname, p.Realm, sname, Name, gokrb5.NewKrbFlags(), r.tab, int32(r.etype), 3, from, from, from.Add(life), from.Add(life))
	if err != nil {
		r.t.Fatal(err)
	}
	b, err := tkt.Marshal()
	if err != nil {
		r.t.Fatal(err)
	}
	return &krb5.Ticket{Client: p, Service: Service + "@" + Name, Message: b, Session: krb5.Key{EType: krb5.EType(key.KeyType), Value: key.KeyValue}, End: from.Add(life)}
}

// Tickets gives a client a ticket for an hour.
func (r *Realm) Tickets(client string) func(context.Context) (*krb5.Ticket, error) {
	return func(context.Context) (*krb5.Ticket, error) { return r.Ticket(client, time.Now(), time.Hour), nil }
}

// Cache is a credential cache in a file of version 4 that holds a ticket.
func Cache(t *krb5.Ticket) []byte {
	b := []byte{5, 4, 0, 12, 0, 1, 0, 8, 0, 0, 0, 0, 0, 0, 0, 0}
	data := func(s string) {
		b = binary.BigEndian.AppendUint32(b, uint32(len(s)))
		b = append(b, s...)
	}
	principal := func(realm string, kind int32, parts []string) {
		b = binary.BigEndian.AppendUint32(b, uint32(kind))
		b = binary.BigEndian.AppendUint32(b, uint32(len(parts)))
		data(realm)
		for _, p := range parts {
			data(p)
		}
	}
	principal(t.Client.Realm, t.Client.Type, t.Client.Parts)
	// libkrb5 stores notes about the cache as credentials.
	principal(t.Client.Realm, t.Client.Type, t.Client.Parts)
	principal("X-CACHECONF:", 0, []string{"krb5_ccache_conf_data", "fast_avail"})
	b = append(b, make([]byte, 2+4+16+1+4+4+4)...)
	data("yes")
	data("")
	name, realm, _ := strings.Cut(t.Service, "@")
	principal(t.Client.Realm, t.Client.Type, t.Client.Parts)
	principal(realm, 2, strings.Split(name, "/"))
	b = binary.BigEndian.AppendUint16(b, uint16(t.Session.EType))
	data(string(t.Session.Value))
	for _, at := range []time.Time{t.End.Add(-time.Hour), t.End.Add(-time.Hour), t.End, t.End} {
		b = binary.BigEndian.AppendUint32(b, uint32(at.Unix()))
	}
	b = append(b, 0)
	b = append(b, make([]byte, 12)...) // flags, no addresses, no authorization data
	data(string(t.Message))
	data("")
	return b
}
