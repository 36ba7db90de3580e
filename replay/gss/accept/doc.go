// Package accept is the server's side of RPCSEC_GSS version 1 with Kerberos (RFC 2203,
// RFC 4121). A Handler sits between a transport and a server of RPC programs: it creates
// contexts, checks and decrypts calls, and protects replies.
//
// The server behind it sees AUTH_SYS calls of the user that a principal stands for, as Identified
// exchanges, which have the flavor and distinguish principals. Calls of other flavors pass
// unchanged.
package accept
