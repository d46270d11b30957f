package peers;

import com.sankuai.inf.leaf.common.Status;
import com.sankuai.inf.leaf.segment.SegmentIDGenImpl;
import org.springframework.boot.SpringApplication;
import org.springframework.boot.autoconfigure.SpringBootApplication;
import org.springframework.boot.autoconfigure.jdbc.DataSourceAutoConfiguration;
import org.springframework.context.annotation.Bean;
import org.springframework.web.bind.annotation.PathVariable;
import org.springframework.web.bind.annotation.RequestMapping;
import org.springframework.web.bind.annotation.RestController;

/**
 * Leaf's published core behind the route that Leaf's own server has, on the same kind of
 * stack (Spring Boot, Tomcat, all by default): that server itself is not published.
 */
@SpringBootApplication(exclude = DataSourceAutoConfiguration.class)
public class LeafServer {
    public static void main(String[] arguments) {
        SpringApplication.run(LeafServer.class, arguments);
    }

    @Bean
    SegmentIDGenImpl leaf() {
        return Generators.leafCore(Database.open());
    }

    /** The one route. An exception becomes Spring's answer 500, as in Leaf's server. */
    @RestController
    static class Route {
        private final SegmentIDGenImpl leaf;

        Route(SegmentIDGenImpl leaf) {
            this.leaf = leaf;
        }

        @RequestMapping("/api/segment/get/{key}")
        String next(@PathVariable("key") String key) {
            var result = leaf.get(key);
            if (result.getStatus() == Status.EXCEPTION) {
                throw new IllegalStateException(result.toString());
            }
            return String.valueOf(result.getId());
        }
    }
}
