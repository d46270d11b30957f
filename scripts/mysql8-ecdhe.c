/* Preloaded into the test's MySQL 8.0.12 by tests/support/mysql8.rs.
 *
 * That server is built with OpenSSL 1.0.2 and never turns on key exchange over
 * elliptic curves, which later servers have and which is the only kind that
 * rustls speaks. This turns it on in every context that the server makes. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stddef.h>

#define SSL_CTRL_SET_ECDH_AUTO 94

void *SSL_CTX_new(const void *method)
{
    void *(*make)(const void *) = (void *(*)(const void *))dlsym(RTLD_NEXT, "SSL_CTX_new");
    long (*control)(void *, int, long, void *) =
        (long (*)(void *, int, long, void *))dlsym(RTLD_NEXT, "SSL_CTX_ctrl");
    void *context = make(method);
    if (context != NULL) {
        control(context, SSL_CTRL_SET_ECDH_AUTO, 1, NULL);
    }
    return context;
}
