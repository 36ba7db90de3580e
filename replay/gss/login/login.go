package login

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/rpcrdma/toolkit/decode/krb5"
)

// Options say who the client is, and where its credentials are.
type Options struct {
	// Cache is the name of a credential cache, "FILE:/path" or a path.
	Cache string
	// Keytab is the name of a file with a key of the client. It is used instead of Cache.
	Keytab string
	// Principal is the client, NAME@REALM; with a keytab it may be empty if the keytab has
	// only one. With a cache it must be the cache's principal.
	Principal string
	// Service is the principal of the server, nfs/HOST, with or without a realm.
	Service string
	// Config is the name of the configuration file of Kerberos; "" stands for
	// /etc/krb5.conf. It is read when a KDC is needed.
	Config string
}

// Login obtains tickets for one service.
type Login struct {
	o       Options
	service krb5.Principal
	client  krb5.Principal

	mu   sync.Mutex
	last *krb5.Ticket
}

// New reads the cache or the keytab. It does not contact a KDC yet.
func New(o Options) (*Login, error) {
	l := &Login{o: o}
	var err error
	if l.service, err = krb5.ParsePrincipal(o.Service); err != nil {
		return nil, fmt.Errorf("%q: %w", o.Service, err)
	}
	var want krb5.Principal
	if o.Principal != "" {
		if want, err = krb5.ParsePrincipal(o.Principal); err != nil {
			return nil, fmt.Errorf("%q: %w", o.Principal, err)
		}
	}
	switch {
	case o.Keytab != "":
		l.client, err = l.owner(want)
	case o.Cache != "":
		var c *cache
		if c, err = loadCache(o.Cache); err == nil {
			l.client = c.client
			if want.Parts != nil && (want.Name() != c.client.Name() || want.Realm != "" && want.Realm != c.client.Realm) {
				err = fmt.Errorf("the credential cache belongs to %s, not to %s", c.client.String(), o.Principal)
			}
		}
	default:
		err = errors.New("a credential cache or a keytab is needed for Kerberos: run kinit, or name one")
	}
	if err != nil {
		return nil, err
	}
	return l, nil
}

// Client is the principal that logs in.
func (l *Login) Client() string { return l.client.String() }

// margin is how long a ticket must still be valid to be used again.
const margin = time.Minute

// Ticket returns a ticket for the service: the previous one while it is valid.
func (l *Login) Ticket(ctx context.Context) (*krb5.Ticket, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := time.Now()
	if l.last != nil && now.Add(margin).Before(l.last.End) {
		return l.last, nil
	}
	t, err := l.get(ctx, now)
	if err != nil {
		return nil, fmt.Errorf("no ticket for %s: %w", l.service.String(), err)
	}
	l.last = t
	return t, nil
}

func (l *Login) get(ctx context.Context, now time.Time) (*krb5.Ticket, error) {
	if l.o.Keytab != "" {
		return l.withKeytab(ctx)
	}
	c, err := loadCache(l.o.Cache) // kinit may have run meanwhile
	if err != nil {
		return nil, err
	}
	if c.client.String() != l.client.String() {
		return nil, fmt.Errorf("the credential cache is now that of %s, not of %s", c.client.String(), l.client.String())
	}
	if e := c.find(&l.service, now); e != nil {
		return &krb5.Ticket{Client: e.client, Service: e.server.String(), Message: e.message, Session: e.key, End: e.end}, nil
	}
	granting := krb5.Principal{Realm: c.client.Realm, Parts: []string{"krbtgt", c.client.Realm}}
	e := c.find(&granting, now)
	if e == nil {
		return nil, fmt.Errorf("the credential cache holds no valid ticket of %s: run kinit", c.client.String())
	}
	return l.grant(ctx, &krb5.Ticket{Client: e.client, Service: e.server.String(), Message: e.message, Session: e.key, End: e.end})
}

// withKeytab asks the KDC for both tickets.
func (l *Login) withKeytab(ctx context.Context) (*krb5.Ticket, error) {
	tab, err := krb5.LoadKeytab(l.o.Keytab)
	if err != nil {
		return nil, err
	}
	last := fmt.Errorf("%s has no key of %s that is of AES", l.o.Keytab, l.client.String())
	for _, e := range krb5.ETypes {
		r, err := krb5.NewASRequest(l.client, tab, e, time.Now())
		if err != nil {
			continue // no key of this type
		}
		granting, err := l.ask(ctx, r, l.client.Realm)
		if err == nil {
			return l.grant(ctx, granting)
		}
		var refused *krb5.KDCError
		if !errors.As(err, &refused) {
			return nil, err
		}
		// The KDC may lack this type, or have a newer key of it.
		last = refused
		if refused.Code != krb5.KDCNoEType && refused.Code != krb5.KDCPreauthFailed {
			break
		}
	}
	return nil, last
}

// grant asks the KDC for the ticket for the service.
func (l *Login) grant(ctx context.Context, granting *krb5.Ticket) (*krb5.Ticket, error) {
	service := l.service
	service.Type = 2 // NT-SRV-INST
	if service.Realm == "" {
		service.Realm = granting.Client.Realm
	}
	if service.Realm != granting.Client.Realm {
		return nil, fmt.Errorf("%s is in another realm than %s: get the ticket with kvno into a credential cache", service.String(), granting.Client.String())
	}
	r, err := krb5.NewTGSRequest(granting, service, time.Now())
	if err != nil {
		return nil, err
	}
	return l.ask(ctx, r, service.Realm)
}

// owner is the principal whose key a keytab has.
func (l *Login) owner(want krb5.Principal) (krb5.Principal, error) {
	tab, err := krb5.LoadKeytab(l.o.Keytab)
	if err != nil {
		return want, err
	}
	var found krb5.Principal
	several := false
	for _, name := range tab.Principals() {
		p, err := krb5.ParsePrincipal(name)
		if err != nil || want.Parts != nil && (want.Name() != p.Name() || want.Realm != "" && want.Realm != p.Realm) {
			continue
		}
		several = several || found.Parts != nil
		found = p
	}
	switch {
	case found.Parts == nil:
		return found, fmt.Errorf("%s has no key of %s", l.o.Keytab, want.String())
	case several:
		return found, fmt.Errorf("%s has keys of several principals: say whose to use (--principal)", l.o.Keytab)
	}
	return found, nil
}
