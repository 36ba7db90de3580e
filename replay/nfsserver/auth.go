package nfsserver

import (
	"slices"

	"github.com/rpcrdma/toolkit/decode/oncrpc"
)

// authenticate fills in Cred from the header. If the flavor is not served, it answers the
// call.
//
// AUTH_NONE and AUTH_SYS are served, and RPCSEC_GSS if what comes before the server has made
// AUTH_SYS of it (Identified). All others, such as AUTH_TLS (RFC 9289), are answered with
// AUTH_BADCRED, as Linux does for a flavor that it lacks: clients that try several flavors then
// try the next one.
func (c *Call) authenticate() bool {
	o := &c.server.opt
	c.Flavor = c.Header.Cred.Flavor
	c.Pseudo = c.Flavor
	switch c.Flavor {
	case oncrpc.AuthNone:
		c.Cred.UID, c.Cred.GID = o.AnonUID, o.AnonGID
		c.User = o.AnonUID
		return true
	case oncrpc.AuthSys:
	default:
		c.denyAuth(oncrpc.AuthBadCred)
		return false
	}
	if !c.sys.Decode(c.Header.Cred.Body) {
		c.denyAuth(oncrpc.AuthBadCred)
		return false
	}
	if c.Header.Verf.Flavor != oncrpc.AuthNone {
		// RFC 5531, appendix A: the verifier of AUTH_SYS is AUTH_NONE.
		c.denyAuth(oncrpc.AuthBadVerf)
		return false
	}
	c.User = c.sys.UID
	if id, ok := c.x.(Identified); ok {
		c.Flavor = oncrpc.RPCSecGSS
		c.Pseudo, c.User = id.Identity()
	}
	c.Cred.UID, c.Cred.GID, c.Cred.GIDs = c.sys.UID, c.sys.GID, c.sys.GIDs[:c.sys.Count]
	switch {
	case o.Squash == AllSquash, o.Squash == RootSquash && c.Cred.UID == 0:
		c.Cred.UID, c.Cred.GID, c.Cred.GIDs = o.AnonUID, o.AnonGID, nil
	case o.Squash == RootSquash:
		if c.Cred.GID == 0 {
			c.Cred.GID = o.AnonGID
		}
		for i, g := range c.Cred.GIDs {
			if g == 0 {
				c.Cred.GIDs[i] = o.AnonGID
			}
		}
	}
	return true
}

// Identified is an Exchange of a call whose sender has proved who he is. Its credential
// is AUTH_SYS, of the user that he is here.
type Identified interface {
	// Identity is the pseudo flavor of the call, and a number that tells its sender
	// from others, even if they are the same user here.
	Identity() (flavor oncrpc.Flavor, user uint32)
}

// Allowed reports whether the server's files may be used with the flavor of the call.
func (c *Call) Allowed() bool { return slices.Contains(c.server.opt.Flavors, c.Pseudo) }

// Flavors are those that the server's files may be used with, the preferred ones first.
func (s *Server) Flavors() []oncrpc.Flavor { return s.opt.Flavors }

func (c *Call) denyAuth(stat oncrpc.AuthStat) {
	c.deny(oncrpc.Reply{Stat: oncrpc.Denied, Reject: oncrpc.AuthError, AuthStat: stat})
}
