/* Keeps TCP_NODELAY on in a program that switches it off: load it with LD_PRELOAD. */

#define _GNU_SOURCE
#include <dlfcn.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

typedef int (*setsockopt_type)(int, int, int, const void *, socklen_t);
typedef int (*connect_type)(int, const struct sockaddr *, socklen_t);
typedef int (*accept4_type)(int, struct sockaddr *, socklen_t *, int);

static void switch_on(int socket) {
    setsockopt_type original = (setsockopt_type)dlsym(RTLD_NEXT, "setsockopt");
    int on = 1;
    original(socket, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
}

int setsockopt(int socket, int level, int name, const void *value, socklen_t size) {
    setsockopt_type original = (setsockopt_type)dlsym(RTLD_NEXT, "setsockopt");
    int on = 1;
    if (level == IPPROTO_TCP && name == TCP_NODELAY)
        return original(socket, level, name, &on, sizeof on);
    return original(socket, level, name, value, size);
}

int connect(int socket, const struct sockaddr *address, socklen_t size) {
    connect_type original = (connect_type)dlsym(RTLD_NEXT, "connect");
    if (address->sa_family == AF_INET || address->sa_family == AF_INET6)
        switch_on(socket);
    return original(socket, address, size);
}

int accept4(int socket, struct sockaddr *address, socklen_t *size, int flags) {
    accept4_type original = (accept4_type)dlsym(RTLD_NEXT, "accept4");
    int accepted = original(socket, address, size, flags);
    if (accepted >= 0)
        switch_on(accepted);
    return accepted;
}
