// Package login gets tickets for a client: from a credential cache, or from a KDC with a
// key of the client in a keytab. The exchange with the KDC, and the configuration of
// Kerberos, are those of the library gokrb5.
package login
