// Package login gets tickets for a client: from a credential cache, or from a KDC with a
// key of the client in a keytab. The library gokrb5
// talks with the KDC and reads the configuration of Kerberos.
package login
